"""tiltmeter forecast: the file of `train`, before training; sentences, horizon, weights, JSON and refusals."""

import json

import pytest

import tiltmeter as tm
from tiltmeter.cli import main

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
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "digits.toml").write_text(DIGITS)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield tmp_path
    torch.set_num_threads(before)


def run(capsys, *argv):
    code = main(argv)
    out, err = capsys.readouterr()
    return code, out, err


def test_a_sentence_first_then_how_far_and_why(capsys, in_a_folder):
    code, out, err = run(capsys, "forecast", "digits.toml", "--save", "ahead.svg")
    assert code == 0
    assert "lead" in out.splitlines()[0]
    assert "the forecast is not to be trusted" in out or "Nothing speaks against the forecast" in out
    assert "% of" in out.splitlines()[-1]
    assert "Forecasting from 300 of 1000 points" in err
    assert "<svg" in (in_a_folder / "ahead.svg").read_text()


def test_forecast_and_training_start_from_the_same_network(capsys):
    assert run(capsys, "forecast", "digits.toml", "--to", "ahead")[0] == 0
    assert run(capsys, "train", "digits.toml", "--to", "real")[0] == 0
    ahead, real = tm.load("ahead"), tm.load("real")
    first = {name: one["loss"].isel(time=0) for name, one in (("ahead", ahead), ("real", real))}
    assert float(abs(first["ahead"] - first["real"]).max()) < 1e-6
    assert ahead["loss"].attrs["definition"] == real["loss"].attrs["definition"]
    code, out, _ = run(capsys, "compare", "ahead", "real")
    assert code == 0
    assert "ahead" in out


def test_json_holds_horizon_and_weights(capsys):
    code, out, _ = run(capsys, "forecast", "digits.toml", "--best-weights", "worst", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["source"] == "forecast"
    assert set(found["horizon"]) >= {"step", "reason"}
    assert set(found["best_weights"]) == {"turned", "upright"}


def test_several_initialisations_have_bands(capsys):
    code, _, _ = run(capsys, "forecast", "digits.toml", "--seeds", "3", "--sample", "100", "--to", "many")
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
def test_bad_input_gets_one_sentence(capsys, in_a_folder, old, new, argv, sentence):
    (in_a_folder / "digits.toml").write_text(DIGITS.replace(old, new) if old else DIGITS)
    code, _, err = run(capsys, "forecast", "digits.toml", *argv)
    assert code == 2
    assert sentence in err
