"""`tiltmeter equilibrium`: a sentence, a table, JSON, a run directory, a picture."""

import json

import pytest

from tiltmeter import load

PROBLEM = ["rho=0.8, variance=(0.5, 1.5), overlap=0.5"]


def test_a_sentence_comes_first(run):
    code, out, _ = run("equilibrium", *PROBLEM, "--loss", "logistic", "--samples", "2", "--ridge", "0.3")
    assert code == 0
    assert out.splitlines()[0] == "- is wrong 32.4 % of the time, + 23.5 %."
    assert "training_loss" in out


def test_fair_groups_are_said_to_be_level(run):
    out = run("equilibrium", "no-bias", "--loss", "square")[1]
    assert out.startswith("All groups are wrong ")


def test_several_samples_are_a_curve(run, tmp_path):
    argv = (
        *PROBLEM,
        "--samples",
        "0.5",
        "--samples",
        "8",
        "--to",
        str(tmp_path / "run"),
        "--save",
        str(tmp_path / "a.svg"),
    )
    code, out, err = run("equilibrium", *argv)
    assert code == 0
    assert "at samples = 0.5, and - is wrong" in out
    assert "Drew" in err
    again = load(tmp_path / "run")
    assert again.error.shape == (2, 2)
    assert again.attrs["origin"]["source"] == "equilibrium"


def test_json_is_complete(run):
    out = run(
        "equilibrium", *PROBLEM, "--loss", "hinge", "--weights", "0.5", "2", "--coupling", "0.3", "--no-bias", "--json"
    )[1]
    found = json.loads(out, parse_constant=lambda text: pytest.fail(f"{text} is not JSON"))
    assert found["curves"]["error"]["dims"] == ["group"]
    assert found["origin"]["settings"]["objective"]["coupling"] == 0.3
    assert found["origin"]["settings"]["objective"]["bias"] is False
    assert found["samples"] is None


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--samples", "-1"], "`samples` should be positive. Found samples = -1."),
        (["--samples", "1", "--ridge", "0"], "there is no single minimiser"),
        (["--save", "a.png"], "A picture needs several samples"),
        (["--weights", "-1", "1"], "should not be negative"),
    ],
)
def test_bad_input_is_one_sentence(run, argv, sentence):
    code, _, err = run("equilibrium", *PROBLEM, *argv)
    assert code == 2
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
