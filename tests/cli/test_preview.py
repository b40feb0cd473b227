"""tiltmeter forecast, why and train with a table: no other file, no torch, guesses said and kept."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

import tiltmeter as tm


@pytest.fixture(autouse=True)
def people(in_a_folder):
    rng = np.random.default_rng(0)
    sex = rng.choice(["women", "men"], 5000, p=[0.4, 0.6])
    income = rng.normal(np.where(sex == "women", 32, 40), 8)
    repaid = np.where(0.2 * (income - 38) + rng.logistic(size=5000) > 0, "yes", "no")
    frame = pd.DataFrame({"sex": sex, "income": income.round(1), "age": rng.integers(20, 60, 5000), "repaid": repaid})
    frame.to_csv("people.csv", index=False)


def test_a_table_is_previewed_without_another_file(run):
    code, out, _ = run("forecast", "people.csv")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith("Women will have the lower true positive rate")
    assert lines[1].startswith("Computed from the table; your network was not trained.")
    assert "Guessed: label repaid, positive label yes, group sex, question benefit." in lines
    assert any(line.startswith("Next: tiltmeter forecast people.csv --rehearse") for line in lines)


def test_it_needs_no_torch(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for verb in ("forecast", "why"):
        code, out, err = run(verb, "people.csv")
        assert code == 0, err
        assert out.startswith("Women will have the lower true positive rate")
    assert run("forecast", "people.csv", "--rehearse")[0] == 2


def test_guesses_are_kept_in_a_file_that_says_the_same(run):
    _, out, _ = run("forecast", "people.csv", "--write-toml", "people.toml")
    assert "Kept in people.toml: check it." in out
    _, again, _ = run("forecast", "people.toml")
    assert again.splitlines()[:4] == out.splitlines()[:4]
    code, _, err = run("forecast", "people.csv", "--write-toml", "people.toml")
    assert code == 2
    assert "never overwritten" in err


def test_what_is_said_is_not_guessed(run):
    _, out, _ = run("forecast", "people.csv", "--label", "repaid", "--positive", "no", "--group", "sex")
    assert "Guessed: question benefit." in out
    assert "tiltmeter why people.csv --label repaid --positive no --group sex" in out  # each next command runs as it is
    code, _, err = run("forecast", "people.csv", "--label", "income_")
    assert code == 2
    assert "no column 'income_'" in err


def test_json_and_a_saved_run(run):
    code, out, _ = run("forecast", "people.csv", "--json", "--to", "ahead", "--save", "ahead.svg")
    found = json.loads(out)
    assert code == 0
    assert found["method"]["name"] == "Preview"
    assert found["claim"].startswith("Women will have")
    assert found["promise"]["sentence"].startswith("Computed from the table")
    assert tm.load("ahead").clock == "progress"
    assert run("report", "ahead", "--out", "page.html")[0] == 0


def test_why_names_the_cause(run):
    code, out, _ = run("why", "people.csv")
    assert code == 0
    assert "Position makes the gap of women" in out
    assert "Computed from the table; your network was not trained." in out
    found = json.loads(run("why", "people.csv", "--json")[1])
    assert {row["cause"] for row in found["causes"]["rows"]} <= {"share", "base rate", "position", "spread", "rule"}
    assert found["ladder"]["modes"]
    assert run("why", "people.csv", "--seeds", "1")[0] == 2


def test_train_and_rehearse_take_the_table(run):
    pytest.importorskip("torch")
    code, out, _ = run("train", "people.csv", "--to", "mine")
    assert code == 0
    assert "Guessed: label repaid" in out
    code, out, _ = run("forecast", "people.csv", "--copies", "1", "--budget", "60")
    assert code == 0
    assert "Rehearsed once" in out
    assert "was not trained" not in out


def test_options_of_a_table_are_refused_for_a_file_that_says_them(run, in_a_folder):
    (in_a_folder / "short.toml").write_text("[training]\nlr = 0.1\nsteps = 2\n")
    code, _, err = run("forecast", "short.toml", "--group", "sex")
    assert code == 2
    assert "--group is about a table. Found short.toml" in err
    assert run("forecast", "nothing.csv")[0] == 2
