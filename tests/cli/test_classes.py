"""`tiltmeter predict --classes`."""

import json

import pytest

from tiltmeter.cli import main

COMMAND = [
    "predict",
    "--classes",
    "3",
    "--rho",
    "0.7",
    "--variance",
    "0.3",
    "1.4",
    "--overlap",
    "0.5",
    "--lr",
    "0.1",
    "--until",
    "100",
    "--looks",
    "30",
]
BIAS = ["--class-bias", "-0.24", "-0.24", "0.3"]


def test_words_first_then_the_kinds_of_crossings(capsys):
    assert main([*COMMAND, *BIAS]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "- leads throughout."
    assert said[1].startswith("Class 0 between groups: - leads until t = ")
    assert any(line.startswith("Classes within +:") for line in said)


def test_json_has_them_apart(capsys):
    assert main([*COMMAND, *BIAS, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["crossings"] == []
    assert [len(one["crossings"]) for one in found["same_class_crossings"]] == [1, 1, 0]
    assert [one["of"] for one in found["classes_crossings"]] == ["+", "-"]
    assert set(found["final"]) == {"loss", "class_loss", "error", "class_accuracy"}


def test_runs_are_kept_and_shown(tmp_path, capsys):
    assert main([*COMMAND, "--to", str(tmp_path / "run"), "--save", str(tmp_path / "loss.svg")]) == 0
    assert (tmp_path / "loss.svg").exists()
    capsys.readouterr()
    assert main(["show", str(tmp_path / "run")]) == 0
    assert "leads" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (["--swapped"], "needs --classes"),
        (["--classes", "1"], "at least 2. Found classes = 1"),
        (["--classes", "3", "--thresholds", "0.1", "0.2"], "--thresholds is for two labels"),
        (["--classes", "3", "--class-bias", "0.1"], "one number for each of the 3 classes"),
        (["--classes", "3", "--config", "x.toml"], "without --config"),
        (["--classes", "3", "--momentum", "0.5"], "no exact solution with momentum"),
    ],
)
def test_bad_input_is_one_sentence(extra, said, capsys):
    assert main(["predict", "--rho", "0.7", "--lr", "0.1", *extra]) == 2
    assert said in capsys.readouterr().err


def test_without_a_learning_rate(capsys):
    assert main(["predict", "--classes", "3"]) == 2
    assert "`lr` is missing" in capsys.readouterr().err
