"""`tiltmeter predict --samples`: a fixed training set from the command line."""

import json

import pytest

PROBLEM = ["rho=0.8, variance=(0.5, 1.5), overlap=0.5", "--evaluations", "12"]


def test_flow(run):
    code, out, _ = run("predict", *PROBLEM, "--lr", "1", "--samples", "2", "--flow", "--until", "100")
    assert code == 0
    assert out.splitlines()[0] == (
        "Group - has the lower loss until t = 0.3473 (larger variance), then group + (more data)."
    )
    assert "training loss +" in out


def test_flow_of_the_population(run):
    code, out, _ = run("predict", *PROBLEM, "--lr", "1", "--flow")
    assert code == 0
    assert out.startswith("Group - has the lower loss until t = 0.8066")


@pytest.mark.parametrize("flag", ["--sgd", "--shuffle", "--descent"])
def test_the_limit_is_told(run, flag):
    more = ["--momentum", "0.5"] if flag == "--descent" else []
    code, out, _ = run(
        "predict",
        *PROBLEM,
        "--lr",
        "0.3",
        "--samples",
        "2",
        flag,
        "--until",
        "8",
        "--flips",
        "0.1",
        "0.3",
        "--json",
        *more,
    )
    assert code == 0
    found = json.loads(out)
    assert found["stability_limit"] > 1.0
    assert found["clock"] == ("step" if flag == "--descent" else "t")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--samples", "2"], "With --samples, choose a training method: give one of --flow"),
        (["--shuffle"], "--shuffle is about a fixed training set: give --samples, too."),
        (["--flips", "0.1", "0.1"], "--flips is about a fixed training set: give --samples, too."),
        (
            ["--samples", "2", "--flow", "--sgd"],
            "Give one of --flow, --descent, --sgd, --shuffle. Found --flow and --sgd.",
        ),
        (["--samples", "2", "--flow", "--batch", "4"], "--flow uses all examples at once and has no --batch"),
        (["--samples", "0", "--flow"], "`samples` should be positive. Found samples = 0."),
        (["--samples", "2", "--shuffle", "--batch", "4"], "no exact solution for shuffled epochs with batch = 4"),
    ],
)
def test_bad_input(run, flags, words):
    code, _, err = run("predict", *PROBLEM, "--lr", "0.3", *flags)
    assert code == 2
    assert words in err


def test_runs_of_repeated_data_are_compared_with_their_own_theory(run):
    code, out, _ = run(
        "simulate", *PROBLEM, "--lr", "0.3", "--d", "100", "--seeds", "8", "--method", "direct", "--alpha", "2",
        "--until", "6", "--against", "theory",
    )  # fmt: skip
    assert code == 0
    assert "Compared with theory" in out
