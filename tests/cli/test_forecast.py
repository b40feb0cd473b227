"""tiltmeter forecast: the file of `train`, before training; sentences, horizon, weights, JSON and refusals."""

import json

import pytest

import tiltmeter as tm

torch = pytest.importorskip("torch")

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

[looks]
per_decade = 5

[forecast]
sample = 300
"""


@pytest.fixture(autouse=True)
def digits_file(in_a_folder):
    (in_a_folder / "digits.toml").write_text(DIGITS)


def test_a_sentence_first_then_how_far_and_why(run, in_a_folder):
    code, out, err = run("forecast", "digits.toml", "--save", "ahead.svg")
    assert code == 0
    assert "lead" in out.splitlines()[0]
    assert "the forecast is not to be trusted" in out or "Nothing speaks against the forecast" in out
    assert "% of" in out.splitlines()[-1]
    assert "Forecasting from 300 of 1000 points" in err
    assert "<svg" in (in_a_folder / "ahead.svg").read_text()


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


def test_json_holds_horizon_and_weights(run):
    code, out, _ = run("forecast", "digits.toml", "--best-weights", "worst", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["source"] == "forecast"
    assert set(found["horizon"]) >= {"step", "reason"}
    assert set(found["best_weights"]) == {"turned", "upright"}


def test_several_initialisations_have_bands(run):
    code, _, _ = run("forecast", "digits.toml", "--seeds", "3", "--sample", "100", "--to", "many")
    assert code == 0
    assert tm.load("many")["loss"].sizes["seed"] == 3


@pytest.mark.parametrize(
    ("old", "new", "argv", "sentence"),
    [
        ("lr = 0.01", "", (), "needs `lr`"),
        ("lr = 0.01", "lr = 0.01\noptimizer = 'adam'", (), "A forecast knows SGD"),
        ("sample = 300", "sampel = 300", (), "unknown key 'sampel'"),
        ("", "", ("--best-weights", "nicest"), "no 'nicest'"),
        ("", "", ("--sample", "1"), "`sample` should be"),
        ('"large"', '"huge"', (), '`labels` should be "digit" or "large"'),
    ],
)
def test_bad_input_gets_one_sentence(run, in_a_folder, old, new, argv, sentence):
    (in_a_folder / "digits.toml").write_text(DIGITS.replace(old, new) if old else DIGITS)
    code, _, err = run("forecast", "digits.toml", *argv)
    assert code == 2
    assert sentence in err
