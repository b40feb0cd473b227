"""XGBoost, LightGBM and CatBoost themselves; in an environment of their own, see CONTRIBUTING.md."""

import numpy as np
import pytest

import tiltmeter as tm

pytestmark = pytest.mark.boosting
ROUNDS = 20


def grouped(classes=2):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 4))
    group = np.where(rng.random(2000) < 0.3, "few", "many")
    rule = x[:, 2] + np.where(group == "few", x[:, 1], x[:, 0])
    y = np.digitize(rule, np.quantile(rule, np.arange(1, classes) / classes))
    return tm.GroupedData(x, y, group).split(held_out=0.5)


def made(package):
    if package == "xgboost":
        return pytest.importorskip("xgboost").XGBClassifier(
            n_estimators=ROUNDS, subsample=0.7, random_state=0, n_jobs=1
        )
    if package == "lightgbm":
        return pytest.importorskip("lightgbm").LGBMClassifier(
            n_estimators=ROUNDS,
            subsample=0.7,
            subsample_freq=1,
            random_state=0,
            verbose=-1,
            n_jobs=1,
            deterministic=True,
        )
    return pytest.importorskip("catboost").CatBoostClassifier(
        iterations=ROUNDS, random_seed=0, verbose=False, allow_writing_files=False, thread_count=1
    )


def dumped(model, package):
    """The whole model as text or bytes."""
    if package == "xgboost":
        return bytes(model.get_booster().save_raw("ubj"))
    if package == "lightgbm":
        return model.booster_.model_to_string()
    return model._serialize_model()


@pytest.mark.parametrize("package", ["xgboost", "lightgbm", "catboost"])
@pytest.mark.parametrize("classes", [2, 3])
def test_round_by_round(package, classes):
    train, held_out = grouped(classes)
    alone = made(package).fit(train.x, train.y)
    before = dumped(alone, package)
    run = tm.predictions.boosting(alone, held_out, when=tm.record.every(1))
    assert dumped(alone, package) == before
    assert run["error"].time.values.tolist() == list(range(1, ROUNDS + 1))
    watched = made(package)
    again = tm.predictions.boosting(watched, held_out, train, when=tm.record.every(1))
    np.testing.assert_array_equal(alone.predict_proba(held_out.x), watched.predict_proba(held_out.x))
    for name, curve in run.items():
        np.testing.assert_array_equal(curve, again[name])
    wrong = alone.predict(held_out.x).reshape(-1) != held_out.y
    for name in held_out.groups:
        np.testing.assert_allclose(run["error"].sel(group=name).values[-1], wrong[held_out.of_group(name)].mean())
    assert tm.leaders(run, "error").last == "many"
    if package != "catboost":  # whose models of fewer rounds would have to be trained
        few = made(package).set_params(n_estimators=7).fit(train.x, train.y)
        chance = few.predict_proba(held_out.x)[held_out.of_group("few")]
        own = held_out.y[held_out.of_group("few")]
        expected = -np.log(chance[np.arange(len(own)), own].astype(float)).mean()
        np.testing.assert_allclose(run["loss"].sel(group="few", time=7), expected, rtol=1e-5)


@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
def test_raw_boosters(package):
    train, held_out = grouped()
    model = made(package).fit(train.x, train.y)
    booster = model.get_booster() if package == "xgboost" else model.booster_
    ours, theirs = (tm.predictions.boosting(one, held_out) for one in (booster, model))
    for name, curve in theirs.items():
        np.testing.assert_allclose(ours[name], curve, rtol=1e-6)
    ranked = made(package).set_params(objective="binary:hinge" if package == "xgboost" else "regression")
    other = ranked.fit(train.x, train.y) if package == "xgboost" else None
    if other is not None:
        with pytest.raises(ValueError, match=r"an objective of probabilities .* Found binary:hinge"):
            tm.predictions.boosting(other.get_booster(), held_out)


@pytest.mark.parametrize("package", ["xgboost", "lightgbm", "catboost"])
def test_weights(package):
    train, held_out = grouped()
    watched = made(package)
    run = tm.predictions.boosting(watched, held_out, train, weights={"few": 8.0})
    plain = tm.predictions.boosting(made(package), held_out, train)
    assert run["loss"].sel(group="few").values[-1] < plain["loss"].sel(group="few").values[-1]
    mass = tm.predictions.sample_weight(train, {"few": 8.0})
    alone = made(package).fit(train.x, train.y, sample_weight=mass)
    np.testing.assert_array_equal(alone.predict_proba(held_out.x), watched.predict_proba(held_out.x))
