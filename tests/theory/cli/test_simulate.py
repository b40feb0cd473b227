"""`tiltmeter simulate`: sentences, comparison with the theory, JSON, files and refusals."""

import json

import pytest

from tiltmeter import load

CROSSING = ["simulate", "rho=0.8, variance=(0.5, 1.5), overlap=0.5", "--lr", "0.1"]
SHORT = {"--d": "200", "--seeds": "6", "--until": "20", "--evaluations": "12", "--since": "0.1"}


@pytest.fixture
def simulate(run):
    """One call, short unless told otherwise."""

    def call(*flags, **options):
        given = SHORT | {f"--{name}": value for name, value in options.items()}
        return run(*CROSSING, *(word for pair in given.items() for word in pair), *flags)

    return call


def test_a_sentence_comes_first_and_then_the_means(simulate):
    code, out, err = simulate()
    assert code == 0
    assert err == ""
    lines = out.splitlines()
    assert "Clear from t = " in lines[0]
    assert lines[2].startswith("At t = 20, mean loss of 6 seeds: + 0.2")
    assert "±" in lines[2]


@pytest.mark.parametrize("method", ["chain", "direct"])
def test_against_theory(simulate, method):
    code, out, _ = simulate("--against", "theory", "--method", method)
    assert code == 0
    assert out.splitlines()[-1].startswith("Compared with theory: the largest distance is 0.0")


def test_json_with_the_agreement(simulate):
    code, out, _ = simulate("--against", "theory", "--json")
    assert code == 0
    found = json.loads(out, parse_constant=lambda text: pytest.fail(f"{text} is not JSON"))
    assert found["source"] == "simulation"
    loss = next(row for row in found["agreement"] if row["curve"] == "loss")
    assert loss["largest"] < 0.1
    assert loss["how"] == "evaluated"


def test_a_network(simulate):
    options = ["--units", "2", "--activation", "relu", "--train-second-layer", "--start-scale", "0.5"]
    code, out, _ = simulate(*options, "--against", "theory", "--curve", "error")
    assert code == 0
    assert "Compared with theory" in out


def test_repeated_data_memorise(simulate):
    code, out, _ = simulate("--alpha", "0.5", "--method", "direct", "--curve", "training_loss", d="60")
    assert code == 0
    assert "mean training_loss of 6 seeds" in out


def test_to_a_run_directory_and_a_picture_of_both(simulate, tmp_path):
    code, _, err = simulate("--against", "theory", "--to", "run", "--save", "both.svg")
    assert code == 0
    assert "Saved to run" in err
    assert load(tmp_path / "run")["loss"].sizes == {"time": 12, "group": 2, "seed": 6}
    picture = (tmp_path / "both.svg").read_text()
    assert "theory" in picture
    assert "simulation" in picture


def test_notes_go_to_stderr(simulate):
    code, out, err = simulate(evaluations="400")
    assert code == 0
    assert err.startswith("Note: 400 times give")
    assert "Note" not in out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"d": "3"}, "`d` should be at least 4: means and teachers span 2 dimensions"),
        ({"seeds": "0"}, "`seeds` should lie between 1 and 100,000,000. Found seeds = 0."),
        ({"alpha": "2"}, "Use method=Direct()."),
        ({"momentum": "0.5", "against": "theory"}, "`predict` has no exact solution with momentum."),
        ({"method": "guess"}, "guess"),
        ({"units": "0"}, "`units` should be at least 1. Found units = 0."),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(simulate, options, sentence):
    code, out, err = simulate(**options)
    assert code == 2
    assert out == ""
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
