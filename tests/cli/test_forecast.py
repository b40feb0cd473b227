"""tiltmeter forecast: the file of `train`, before training; sentences, promise, weights, JSON and refusals."""

import json
from dataclasses import fields

import pytest

import tiltmeter as tm
from tiltmeter.cli.toml_file import PROBLEM_FILE, TRAINING_FILE

torch = pytest.importorskip("torch")

from tiltmeter.cli.forecast import METHODS  # noqa: E402
from tiltmeter.forecast import task  # noqa: E402

DIGITS = """
[data]
source = "digits"
labels = "large"
share = 0.9

[model]
hidden = [64]

[training]
lr = 0.01
steps = 200
batch = 16
loss = "square"

[evaluations]
per_decade = 5

[forecast]
budget = 30
"""


@pytest.fixture(autouse=True)
def digits_file(in_a_folder):
    (in_a_folder / "digits.toml").write_text(DIGITS)


def test_a_sentence_first_then_what_is_promised(run, in_a_folder):
    code, out, err = run("forecast", "digits.toml", "--save", "ahead.svg")
    assert code == 0
    assert out.startswith("Group turned will have an error of ")
    assert "The true positive rates will differ: " in out.splitlines()[0]
    assert "exact on the same machine; reliable up to step 200; " in out
    assert "One rehearsal with the run's own batches: about" in err
    assert "<svg" in (in_a_folder / "ahead.svg").read_text()


def test_a_budget_too_small_is_said_first(run, monkeypatch):
    real = task.price_of
    monkeypatch.setattr(task, "price_of", lambda one: real(one)._replace(training=25.0))
    code, out, _ = run("forecast", "digits.toml", "--budget", "2")
    assert code == 0
    assert out.startswith("Nothing is promised about the end. A budget of ")


def test_forecast_and_training_start_from_the_same_network(run):
    assert run("forecast", "digits.toml", "--to", "ahead")[0] == 0
    assert run("train", "digits.toml", "--to", "real")[0] == 0
    ahead, real = tm.load("ahead"), tm.load("real")
    first = {name: one["loss"].isel(time=0) for name, one in (("ahead", ahead), ("real", real))}
    assert float(abs(first["ahead"] - first["real"]).max()) < 1e-6
    assert ahead["loss"].attrs["definition"] == real["loss"].attrs["definition"]
    code, out, _ = run("compare", "ahead", "real")
    assert code == 0
    assert "ahead" in out


def test_a_name_that_is_taken_is_refused_before_the_work(run, in_a_folder):
    (in_a_folder / "ahead").mkdir()
    (in_a_folder / "ahead" / "run.json").write_text("{}")
    code, _, err = run("forecast", "digits.toml", "--to", "ahead")
    assert code == 2
    assert "already holds a run" in err
    assert "Forecasting" not in err


def test_json_holds_promise_and_weights(run):
    code, out, _ = run("forecast", "digits.toml", "--best-weights", "worst", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["source"] == "forecast"
    assert found["promise"]["reliable_until"] == 200
    assert found["method"]["name"] == "Rehearsal"
    assert set(found["best_weights"]) == {"turned", "upright"}


def test_several_initialisations(run):
    code, _, _ = run("forecast", "digits.toml", "--seeds", "3", "--to", "many")
    assert code == 0
    assert tm.load("many").origin.settings["promise"]["copies"] == 3


def test_other_methods(run, in_a_folder):
    adam = DIGITS.replace("lr = 0.01", "lr = 0.001\noptimiser = 'adam'")
    (in_a_folder / "adam.toml").write_text(adam)
    code, _, _ = run("forecast", "adam.toml", "--method", "twin", "--to", "chosen")
    assert code == 0
    assert tm.load("chosen").origin.settings["recipe"]["order"] == 0  # the seed of the file orders its run
    assert tm.load("chosen").origin.settings["method"]["name"] == "Twin"
    code, out, _ = run("forecast", "digits.toml", "--method", "kernel", "--json")
    assert code == 0
    assert json.loads(out)["promise"] is None


@pytest.mark.parametrize(
    ("old", "new", "argv", "sentence"),
    [
        ("lr = 0.01", "", (), "needs `lr`"),
        ("lr = 0.01", "lr = 0.01\noptimiser = 'adam'", ("--method", "kernel"), "knows SGD"),
        ("budget = 30", "bugdet = 30", (), "unknown key 'bugdet'"),
        ("budget = 30", "method = 'twin'\nsample = 300", (), "sample does not belong to 'twin'"),
        ("budget = 30", "share = 2.0", (), "`share` should be a share above 0, up to 1."),
        ("", "", ("--method", "oracle"), "no 'oracle'. There are: rehearsal, twin, linear, preview, kernel."),
        ("", "", ("--best-weights", "nicest"), "no 'nicest'"),
        ("", "", ("--budget", "0"), "`budget` should be a positive number of seconds"),
        ("", "", ("--budget", "0.5"), "`budget` should be at least 2 seconds"),
        ("budget = 30", "sample = 1", (), "`sample` should be"),
        ("", "", ("--seeds", "2", "--best-weights", "gap"), "leave out --seeds"),
        ('"large"', '"huge"', (), '`labels` should be "digit" or "large"'),
    ],
)
def test_bad_input_gets_one_sentence(run, in_a_folder, old, new, argv, sentence):
    (in_a_folder / "digits.toml").write_text(DIGITS.replace(old, new) if old else DIGITS)
    code, _, err = run("forecast", "digits.toml", *argv)
    assert code == 2
    assert sentence in err


def test_the_rest_of_a_run_is_forecast_from_its_checkpoint(run, in_a_folder):
    text = DIGITS.replace("steps = 200", "steps = 40\ncheckpoint = 20")
    (in_a_folder / "short.toml").write_text(text)
    assert run("train", "short.toml", "--to", "begun")[0] == 0
    (in_a_folder / "long.toml").write_text(text.replace("steps = 40", "steps = 120"))
    code, out, _ = run("show", "begun", "--ahead", "long.toml")
    assert code == 0
    assert "From step 40 on, as forecast" in out
    code, _, err = run("show", "begun", "--ahead", "short.toml")
    assert code == 2
    assert "should have steps to come" in err
    assert "leave out --follow" in run("show", "begun", "--ahead", "long.toml", "--follow")[2]


def test_a_file_can_hold_every_setting():
    """The tables of a file follow the fields of the classes that they make; a schedule is a value of `lr`."""
    recipe = {field.name for field in fields(tm.Recipe)} - {"schedule", "sampling"}
    assert set(TRAINING_FILE["training"]) - {"seed", "validation", "checkpoint"} == recipe
    assert set(TRAINING_FILE["question"]) == {field.name for field in fields(tm.Question)}
    methods = {field.name for kind in METHODS.values() for field in fields(kind)}
    assert set(TRAINING_FILE["forecast"]) - {"method", "budget"} == methods
    sgd = {field.name for field in fields(tm.SGD)}
    assert set(PROBLEM_FILE["sgd"]) - {"start_scale", "intervention"} == sgd
