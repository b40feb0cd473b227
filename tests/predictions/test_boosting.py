"""Boosting, partial fits and warm starts round by round: who leads when, and the model as if nobody had looked."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neural_network import MLPClassifier

import tiltmeter as tm


def grouped(count=1600, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 4))
    group = np.where(rng.random(count) < 0.3, "few", "many")
    rule = x[:, 2] + np.where(group == "few", x[:, 1], x[:, 0])
    y = np.digitize(rule, np.quantile(rule, np.arange(1, classes) / classes))
    return tm.GroupedData(x, y, group).split(held_out=0.5)


TRAIN, HELD_OUT = grouped()
STAGED = [
    HistGradientBoostingClassifier(max_iter=25, random_state=0),
    GradientBoostingClassifier(n_estimators=25, random_state=0),
    AdaBoostClassifier(n_estimators=25, random_state=0),
]
GROWING = [
    SGDClassifier(loss="log_loss", random_state=0),
    SGDClassifier(loss="hinge", random_state=0),
    MLPClassifier((8,), random_state=0),
    RandomForestClassifier(n_estimators=1, warm_start=True, random_state=0),
]


def name_of(model):
    return type(model).__name__


@pytest.mark.parametrize("model", STAGED, ids=name_of)
def test_staged_predictions(model):
    fitted = clone(model).fit(TRAIN.x, TRAIN.y)
    before = pickle.dumps(fitted)
    run = tm.predictions.boosting(fitted, HELD_OUT, when=tm.record.every(1))
    assert pickle.dumps(fitted) == before
    assert run.clock == "round"
    assert run["error"].time.values.tolist() == list(range(1, 26))
    for name in HELD_OUT.groups:
        own = HELD_OUT.of_group(name)
        expected = (fitted.predict(HELD_OUT.x[own]) != HELD_OUT.y[own]).mean()
        np.testing.assert_allclose(run["error"].sel(group=name).values[-1], expected, atol=1e-12)
    assert tm.leaders(run, "error").last == "many"
    assert "round" in str(tm.fairness.stopping(run))


def test_fitting_here_is_fitting_there():
    alone = HistGradientBoostingClassifier(max_iter=10, random_state=0).fit(TRAIN.x, TRAIN.y)
    watched = HistGradientBoostingClassifier(max_iter=10, random_state=0)
    tm.predictions.boosting(watched, HELD_OUT, TRAIN)
    np.testing.assert_array_equal(alone.predict_proba(HELD_OUT.x), watched.predict_proba(HELD_OUT.x))


@pytest.mark.parametrize("model", GROWING, ids=name_of)
def test_models_that_grow(model):
    watched, alone = clone(model), clone(model)
    run = tm.predictions.boosting(watched, HELD_OUT, TRAIN, rounds=6, when=tm.record.every(2))
    for number in range(1, 7):
        if hasattr(alone, "partial_fit"):
            alone.partial_fit(TRAIN.x, TRAIN.y, **({"classes": [0, 1]} if number == 1 else {}))
        else:
            alone.set_params(n_estimators=number).fit(TRAIN.x, TRAIN.y)
    assert pickle.dumps(watched) == pickle.dumps(alone)
    assert run["error"].time.values.tolist() == [2, 4, 6]
    assert ("loss" in run) == hasattr(model, "predict_proba")
    assert tm.leaders(run, "error").differences


def test_several_classes():
    train, held_out = grouped(classes=3)
    model = HistGradientBoostingClassifier(max_iter=10, random_state=0)
    run = tm.predictions.boosting(model, held_out, train)
    assert run["class_accuracy"].sizes["class"] == 3


def test_labels_in_words_and_a_frame_of_features(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(size=800), "sex": rng.choice(["F", "M"], 800)})
    table["verdict"] = np.where(table.age + 0.3 * rng.normal(size=800) > 0, "approved", "denied")
    data = tm.GroupedData.from_frame(table, label="verdict", group="sex", positive="approved")
    # The model lists "approved" first, the data count it as 1.
    model = HistGradientBoostingClassifier(max_iter=10, random_state=0).fit(table[["age"]], table.verdict)
    run = tm.predictions.boosting(model, data, x=table[["age"]])
    right = (model.predict(table[["age"]]) == table.verdict)[table.sex == "F"].mean()
    np.testing.assert_allclose(1 - run["error"].sel(group="F").values[-1], right)


def test_weights_are_the_sample_weights_of_the_fit():
    weights = {"few": 5.0, ("many", 1): 0.5}
    watched = GradientBoostingClassifier(n_estimators=5, random_state=0)
    tm.predictions.boosting(watched, HELD_OUT, TRAIN, weights=weights)
    mass = np.ones(len(TRAIN))
    codes = np.asarray(TRAIN.groups)[TRAIN.codes]
    mass[codes == "few"] = 5.0
    mass[(codes == "many") & (TRAIN.y == 1)] = 0.5
    alone = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(TRAIN.x, TRAIN.y, sample_weight=mass)
    np.testing.assert_array_equal(alone.predict_proba(HELD_OUT.x), watched.predict_proba(HELD_OUT.x))
    balanced = tm.predictions.sample_weight(TRAIN, tm.interventions.Balanced())
    sums = [balanced[TRAIN.of_group(name)].sum() for name in TRAIN.groups]
    np.testing.assert_allclose(sums[0], sums[1])


def test_several_seeds_are_stacked():
    runs = [
        tm.predictions.boosting(
            GradientBoostingClassifier(n_estimators=5, subsample=0.5, random_state=seed), HELD_OUT, TRAIN, seed=seed
        )
        for seed in range(5)
    ]
    assert "5 trainings" in str(tm.leaders(tm.stack(runs), "error"))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tm.predictions.boosting(LogisticRegression().fit(TRAIN.x, TRAIN.y), HELD_OUT), TypeError, "Found LogisticRegression: it has warm_start, so give `train` and `rounds`, too."),
        (lambda: tm.predictions.boosting(SGDClassifier(), HELD_OUT, TRAIN), ValueError, "`rounds` should be a positive number of rounds. Found rounds = None."),
        (lambda: tm.predictions.boosting(RandomForestClassifier(), HELD_OUT, TRAIN, rounds=3), TypeError, "or be made with warm_start=True"),
        (lambda: tm.predictions.boosting(STAGED[0], HELD_OUT, rounds=3), ValueError, "`rounds` is for a model that is fitted here"),
        (lambda: tm.predictions.boosting(clone(STAGED[0]), HELD_OUT, TRAIN, rounds=3), ValueError, "a boosting model has its own number"),
        (lambda: tm.predictions.boosting(STAGED[0], TRAIN.x), TypeError, "`held_out` should be GroupedData. Found ndarray."),
        (lambda: tm.predictions.boosting(STAGED[0], HELD_OUT, x=TRAIN.x[:3]), ValueError, "Found 3 for"),
        (lambda: tm.predictions.sample_weight(TRAIN, tm.interventions.GroupDRO(0.1)), TypeError, "Found GroupDRO, which follows the losses."),
        (lambda: tm.predictions.boosting(clone(STAGED[0]).fit(TRAIN.x, TRAIN.y + 1), HELD_OUT), ValueError, "the labels of the model (1, 2). Found 0."),
    ],
)  # fmt: skip
def test_sentences(call, error, words):
    with pytest.raises(error) as raised:
        call()
    assert words in str(raised.value)
