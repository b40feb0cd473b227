"""What people write before they look anything up runs, or is answered with the call that does."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LinearRegression, LogisticRegression
from torch import nn

import tiltmeter as tm

RECIPE = tm.Recipe(lr=0.05, steps=40, batch=32, loss=tm.Logistic())


@pytest.fixture(scope="module")
def data():
    return tm.data.loans(applications=2000)


@pytest.fixture(scope="module")
def run(data):
    torch.manual_seed(0)
    return tm.train(nn.Linear(3, 1), *data, RECIPE)


def test_tables_are_data():
    table = tm.data.loans_table(600)
    named = tm.GroupedData(table, label="repaid", group="sex", positive="yes", features=["income", "debt"])
    assert (len(named), named.x.shape[1], named.groups) == (600, 2, ("men", "women"))
    assert tm.preview(table, label="repaid", group="sex").claim
    with pytest.raises(TypeError, match=r"tm\.preview\(table, label='repaid', group='sex'\)"):
        tm.preview(table)


def test_estimators_are_asked_themselves(data):
    train, held_out = data
    groups = [held_out.groups[code] for code in held_out.codes]
    model = LogisticRegression().fit(train.x, train.y)
    asked = tm.predictions.run(model, held_out)
    chances = model.predict_proba(held_out.x)[:, 1]
    for other in (
        tm.predictions.run(model, held_out.x, held_out.y, groups),
        tm.predictions.run(y_true=held_out.y, y_score=chances, group=groups),
        tm.predictions.run(label=held_out.y, score=chances, group=groups),
    ):
        np.testing.assert_array_equal(other["tpr"], asked["tpr"])
    assert tm.leaders(asked).curve == "tpr"  # the question that the data carry
    straight = LinearRegression().fit(train.x, train.y)
    assert "loss" in tm.predictions.run(straight, held_out.x, held_out.y.astype(float), groups)
    with pytest.raises(TypeError, match=r"tm\.predictions\.run\(estimator, held_out\)"):
        tm.predictions.run(model)
    with pytest.raises(TypeError, match=r"label='label', group='group'"):
        tm.predictions.run(pd.DataFrame({"score": [0.1]}))


def test_a_run_as_a_table_a_page_and_a_picture(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = run.to_frame()
    assert list(frame.columns[:2]) == ["time", "group"]
    last = frame[(frame.time == 40) & (frame.group == "women")]
    assert last["tpr"].item() == pytest.approx(float(run["tpr"].sel(time=40, group="women")))
    assert tm.report(run).name == "tiltmeter-report.html"
    assert tm.plot.curves(run, "tpr").to_dict() == tm.plot.curves(run, curve="tpr").to_dict()
    with pytest.raises(TypeError, match=r"tm\.report\(tm\.predictions\.run\(table"):
        tm.report(pd.DataFrame({"label": [0, 1]}))


def test_groups_by_several_attributes_stay_whole_in_a_table():
    table = pd.DataFrame({"label": [0, 1] * 50, "score": [0.2, 0.8] * 50, "a": ["x", "y"] * 50, "b": ["p"] * 100})
    frame = tm.predictions.run(table, label="label", group=["a", "b"]).to_frame()
    assert set(frame["group"]) == {("x", "p"), ("y", "p")}


def test_several_trainings(data, tmp_path):
    def make():
        return nn.Linear(3, 1)

    several = tm.train(make, *data, RECIPE, seeds=3, to=tmp_path / "runs")
    assert several["loss"].sizes["seed"] == 3
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["seed-0", "seed-1", "seed-2"]
    torch.manual_seed(1)
    np.testing.assert_array_equal(several["loss"].sel(seed=1), tm.train(make(), *data, RECIPE, seed=1)["loss"])
    same = tm.train(nn.Linear(3, 1), *data, RECIPE, seeds=2)  # the same initial weights, other batches
    first = same["loss"].isel(time=0)
    np.testing.assert_array_equal(first.sel(seed=0), first.sel(seed=1))
    with pytest.raises(TypeError, match=r"train\(make, \.\.\., seeds=5\)"):
        tm.train(make, *data, RECIPE)
    with pytest.raises(ValueError, match="whole number of trainings"):
        tm.train(make, *data, RECIPE, seeds=0)


def test_a_file_as_objects(tmp_path):
    tm.data.loans_table(600).to_csv(tmp_path / "loans.csv", index=False)
    (tmp_path / "loans.toml").write_text(
        '[data]\nsource = "loans.csv"\nlabel = "repaid"\npositive = "yes"\ngroup = "sex"\n'
        '[training]\nlr = 0.1\nsteps = 20\n[question]\nkind = "benefit"\n'
    )
    task = tm.from_toml(tmp_path / "loans.toml")
    assert task.question.asked == "tpr"
    assert tm.train(*task[:4])["loss"].time.values[-1] == 20
