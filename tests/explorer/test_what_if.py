"""Forecasts that are bent: where they start from, what is refused, and that a bend is the recipe it says."""

import json

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.explorer.what_if import (
    best_weights_found,
    interventions_compared,
    saved_forecast,
    train_bent,
    what_if_forecast,
    what_if_start,
)
from tiltmeter.explorer.what_if_sources import experiment_of, training_files, what_if_sources

READER = "tiltmeter.explorer.verb:explored_file"
FILE = """
[data]
source = "people.csv"
label = "income"
group = "sex"
[model]
hidden = [8]
[training]
lr = 0.05
steps = 40
batch = 32
loss = "logistic"
weights = {f = 2.0}
"""
PLAIN = {"lr": None, "steps": 40, "weights": [], "shares": [], "law": ""}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("what-if")
    rng = np.random.default_rng(0)
    x, rare = rng.normal(size=(200, 3)), rng.random(200) < 0.3
    y = (np.where(rare, x[:, 0], x[:, 1]) > 0).astype(int)
    rows = [f"{a:.3f},{b:.3f},{c:.3f},{'f' if g else 'm'},{t}" for (a, b, c), g, t in zip(x, rare, y, strict=True)]
    (root / "people.csv").write_text("\n".join(["a,b,c,sex,income", *rows]))
    (root / "deep").mkdir()
    (root / "training.toml").write_text(FILE)
    (root / "deep" / "study.toml").write_text("[study]\ncell = 'a:b'\n")
    (root / "deep" / "torn.toml").write_text("[training")
    return root


def test_sources_are_files_of_trainings_and_saved_forecasts(folder, tmp_path):
    assert list(training_files(folder)) == ["training.toml"]
    (tmp_path / "link.toml").symlink_to(folder / "training.toml")
    assert training_files(tmp_path) == {}
    loss = tm.predict(*tm.theory.cases.centred_crossing())["loss"]
    ahead = tm.Trajectory({"loss": loss}, "step", tm.record.Origin("forecast"))
    tm.save(ahead, tmp_path / "ahead")
    assert [one["source"] for one in what_if_sources(str(tmp_path))] == ["digits", "run/ahead"]
    told = saved_forecast(str(tmp_path), "run/ahead")
    assert told["groups"] == ["+", "-"]
    assert told["promised_since"] is None
    several = loss * xr.DataArray([1.0, 1.2], dims="seed", coords={"seed": [0, 1]})
    tm.save(tm.Trajectory({"loss": several}, "step", tm.record.Origin("forecast")), tmp_path / "two" / "several")
    band = saved_forecast(str(tmp_path / "two"), "run/several")["band"]
    assert band["upper"] == pytest.approx(1.2 * np.array(band["lower"]))
    with pytest.raises(ValueError, match="This forecast is no longer there"):
        saved_forecast(str(tmp_path), "run/../ahead")


@pytest.mark.parametrize("source", ["file/deep/study.toml", "file/../training.toml", "file//etc/passwd", "nonsense"])
def test_only_files_of_the_folder_are_read(folder, source):
    with pytest.raises(ValueError, match="This file is no longer there"):
        experiment_of(str(folder), source, READER, False)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("../people.csv", r"\[data\] source should lie in the folder that is explored"),
        ("/etc/passwd", r"\[data\] source should lie in the folder that is explored"),
        ("adult", "may have to be downloaded: start the explorer with --allow-runs"),
    ],
)
def test_data_outside_the_folder_are_not_read(tmp_path, folder, source, sentence):
    pytest.importorskip("torch")
    root = tmp_path / "inner"
    root.mkdir()
    (tmp_path / "people.csv").write_text((folder / "people.csv").read_text())
    (root / "training.toml").write_text(FILE.replace("people.csv", source))
    with pytest.raises(ValueError, match=sentence):
        experiment_of(str(root), "file/training.toml", READER, False)


def test_a_bend_is_the_recipe_it_says(folder):
    pytest.importorskip("torch")
    one = experiment_of(str(folder), "file/training.toml", READER, False)
    assert what_if_start(str(folder), "file/training.toml", READER, False)["weights"] == [2.0, 1.0]
    assert one.bent(PLAIN).weights == {"f": 2.0}
    assert one.bent({**PLAIN, "weights": [1.0, 1.0]}).weights is None
    bent = one.bent({**PLAIN, "lr": 0.1, "weights": [3.0, 1.0], "shares": [0.5, 0.5], "law": "group DRO"})
    assert (bent.lr, bent.steps, bent.weights) == (0.1, 40, {"f": 3.0, "m": 1.0})
    assert bent.proportions == {"f": 0.5, "m": 0.5}
    assert [type(law).__name__ for law in bent.interventions] == ["GroupDRO"]
    for wrong, sentence in (
        ({"lr": 0.0}, "`lr` should lie between 0 and 1000. Found lr = 0."),
        ({"steps": 0}, "`steps` should lie between 1 and 1e"),
        ({"weights": [1.0]}, "`weights` should be one number for each of the 2 groups."),
        ({"law": "alchemy"}, "There is no intervention 'alchemy'. There are: balanced weights,"),
    ):
        with pytest.raises(ValueError, match=sentence):
            one.bent({**PLAIN, **wrong})


def test_a_file_is_forecast_bent_and_trained(folder, tmp_path):
    pytest.importorskip("torch")
    asked = (str(folder), "file/training.toml", READER, False)
    heavier = what_if_forecast(*asked, {**PLAIN, "weights": [20.0, 1.0]}, full=False)
    told = what_if_forecast(*asked, PLAIN, full=True)
    assert told["groups"] == ["f", "m"]
    assert told["promise_text"] == "The linearised network, which promises nothing."
    assert heavier["values"][-1][0] < told["values"][-1][0]
    progress = []
    found = best_weights_found(*asked, PLAIN, tell=progress.append)
    assert progress == ["computing the kernels of the network", "trying weights"]
    assert len(found["weights"]) == 2
    rows = interventions_compared(*asked, PLAIN, tell=progress.append)["rows"]
    assert rows[0]["law"] == ""
    assert any("refused" in row and "SAM" in row["refused"] for row in rows)
    assert any(row["law"] == "group DRO" and "worst" in row for row in rows)
    assert progress[-1] == "11 of 11: SAM"
    first = train_bent(*asked, PLAIN, tell=progress.append)
    assert first == {"run": "from-explorer/training-1"} == progress[-1]
    run = tm.load(folder / "from-explorer" / "training-1")
    assert run["loss"].coords["time"].values[-1] == 40


@pytest.mark.parametrize(
    ("promise", "trust"),
    [
        ({"from": 2.0, "sentence": "Rehearsed 3 times"}, "Trust is fair: promised from step 2 on"),
        ({"from": 0.0, "sentence": "Rehearsed 3 times", "reliable_until": 4e3}, "Reliable up to step 4,000"),
        (None, "Trust is low: nothing is promised"),
    ],
)
def test_a_saved_promise_is_told(tmp_path, promise, trust):
    loss = tm.predict(*tm.theory.cases.centred_crossing())["loss"]
    origin = tm.record.Origin("forecast", settings={"promise": promise})
    tm.save(tm.Trajectory({"loss": loss}, "step", origin), tmp_path / "ahead")
    told = saved_forecast(str(tmp_path), "run/ahead")
    if promise is not None:
        assert (told["promised_since"] or 0.0, told["promise_text"]) == (promise["from"], "Rehearsed 3 times.")
    assert told["trust"]["text"] == trust


def test_what_reads_needs_no_leave(explorer):
    answer = explorer.post("/api/jobs", {"kind": "best weights", "settings": {"source": "digits"}})
    assert answer.status == 400
    assert "A forecast should have numbers" in json.loads(answer.text)["error"]
    sources = explorer.json("/api/sources")
    assert sources[0]["source"] == "digits"
