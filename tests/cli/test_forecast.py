"""tiltmeter forecast: the file of `train`, before training; sentences, horizon, weights, JSON and refusals."""

import json
import re

import pytest

import tiltmeter as tm
from tiltmeter.cli.train_config import build_data, build_model, read_config

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
    assert "Do not trust the forecast" in out or "The tests of the forecast find no problem" in out
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


def test_a_name_that_is_taken_is_refused_before_the_work(run, in_a_folder):
    (in_a_folder / "ahead").mkdir()
    (in_a_folder / "ahead" / "run.json").write_text("{}")
    code, _, err = run("forecast", "digits.toml", "--to", "ahead")
    assert code == 2
    assert "already holds a run" in err
    assert "Forecasting" not in err


def test_json_holds_horizon_and_weights(run):
    code, out, _ = run("forecast", "digits.toml", "--best-weights", "worst", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["source"] == "forecast"
    assert set(found["horizon"]) >= {"step", "reason"}
    assert set(found["best_weights"]) == {"turned", "upright"}


def test_why_knows_the_weights_and_the_momentum(run, in_a_folder):
    (in_a_folder / "heavy.toml").write_text(
        DIGITS.replace("batch = 16", "batch = 16\nmomentum = 0.9\nweights = {turned = 9.0}")
    )
    plain, heavy = (
        json.loads(run("forecast", name, "--json")[1])["said"][-1] for name in ("digits.toml", "heavy.toml")
    )
    assert plain.split(" % of turned")[0].split()[-1] != heavy.split(" % of turned")[0].split()[-1]
    step, share = (int(re.search(r"step (\d+)", heavy)[1]), float(re.search(r"([\d.e-]+) % of turned", heavy)[1]))
    tables = read_config(in_a_folder / "heavy.toml")
    data, look = build_data(tables["data"], in_a_folder)
    torch.manual_seed(0)
    kernels = tm.tangent(build_model(tables["model"], data, tm.Square()), data, look, sample=300)
    recipe = tm.Recipe(lr=0.01, momentum=0.9, steps=step, batch=None, weights={"turned": 9.0}, loss=tm.Square())
    found = kernels.why(recipe, step=step)
    assert 100 * found.shares["turned"] == pytest.approx(share, rel=0.06)  # two figures


def test_several_initialisations_have_bands(run):
    code, _, _ = run("forecast", "digits.toml", "--seeds", "3", "--sample", "100", "--to", "many")
    assert code == 0
    assert tm.load("many")["loss"].sizes["seed"] == 3


def test_other_routes(run, in_a_folder):
    adam = DIGITS.replace("lr = 0.01", "lr = 0.001\noptimiser = 'adam'").replace("sample = 300", "")
    (in_a_folder / "adam.toml").write_text(adam)
    code, _, err = run("forecast", "adam.toml", "--to", "chosen")
    assert code == 0
    assert "Route Twin(share=0.125" in err
    assert tm.load("chosen").origin.settings["recipe"]["order"] == 0  # the seed of the file orders its run
    code, out, _ = run("forecast", "adam.toml", "--route", "coordinates", "--json")
    assert code == 0
    assert json.loads(out)["horizon"] is None


@pytest.mark.parametrize(
    ("old", "new", "argv", "sentence"),
    [
        ("lr = 0.01", "", (), "needs `lr`"),
        ("lr = 0.01", "lr = 0.01\noptimiser = 'adam'", (), "knows SGD"),
        ("sample = 300", "sampel = 300", (), "unknown key 'sampel'"),
        ("sample = 300", "route = 'twin'\nsample = 300", (), "sample does not belong to route 'twin'"),
        ("sample = 300", "share = 2.0", (), "`share` should be a share above 0, up to 1."),
        ("", "", ("--route", "oracle"), "no 'oracle'. There are: kernel, coordinates, twin."),
        ("sample = 300", "", ("--route", "twin", "--best-weights", "gap"), "needs the kernel"),
        ("", "", ("--best-weights", "nicest"), "no 'nicest'"),
        ("", "", ("--sample", "1"), "`sample` should be"),
        ("", "", ("--real-steps", "300"), "`real_steps` should be at most the 200 steps forecast."),
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
    text = DIGITS.replace("sample = 300", "").replace("steps = 200", "steps = 40\ncheckpoint = 20")
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
