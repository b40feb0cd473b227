"""Several classes on the command line: `predict`, `simulate` and `train`, by options and by files."""

import json

import pytest

import tiltmeter as tm
from tiltmeter.cli import main

NUMBERS = "classes=3, rho=0.7, variance=(0.3, 1.4), overlap=0.5"
BIASED = f"{NUMBERS}, class_bias=(-0.24, -0.24, 0.3)"
MORE = ["--lr", "0.1", "--until", "100", "--evaluations", "30"]


def test_words_first_then_the_kinds_of_crossings(capsys):
    assert main(["predict", BIASED, *MORE]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "Group - has the lower loss throughout."
    assert said[2].startswith("Class 0 between groups: Group - has the lower class loss until t = ")
    assert any(line.startswith("Classes within +:") for line in said)


def test_json_has_them_apart(capsys):
    assert main(["predict", BIASED, *MORE, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["crossings"] == []
    assert [len(one["crossings"]) for one in found["same_class_crossings"]] == [1, 1, 0]
    assert [one["of"] for one in found["classes_crossings"]] == ["+", "-"]
    assert set(found["final"]) == {"loss", "class_loss", "error", "class_accuracy"}


def test_runs_are_kept_and_shown(tmp_path, capsys):
    assert main(["predict", NUMBERS, *MORE, "--to", str(tmp_path / "run"), "--save", str(tmp_path / "loss.svg")]) == 0
    assert (tmp_path / "loss.svg").exists()
    capsys.readouterr()
    assert main(["show", str(tmp_path / "run")]) == 0
    assert "has the lower loss" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("swapped=True", "`swapped` needs `classes`, as in classes=3."),
        ("softmax=True", "`softmax` needs `classes`, as in classes=3."),
        ("classes=1", "at least 2. Found classes = 1"),
        ("classes=3, thresholds=(0.1, 0.2)", "`thresholds` is for two labels"),
        ("classes=3, class_bias=(0.1,)", "one number for each of the 3 classes"),
        ("classes=3 --samples 2 --flow", "SGD on fresh examples only. Train on `samples` with `train`"),
        ("classes=3, shift_overlap=(0.1, 0.2)", "with `classes` there are: rho, shift"),
        ("classes=3 --momentum 0.5", "no exact solution with momentum"),
    ],
)
def test_bad_input_is_one_sentence(extra, said, capsys):
    problem, *more = extra.split(" --")
    flags = [word for part in more for word in f"--{part}".split()]
    assert main(["predict", f"rho=0.7, {problem}", "--lr", "0.1", *flags]) == 2
    assert said in capsys.readouterr().err


def test_without_a_learning_rate(capsys):
    assert main(["predict", "classes=3"]) == 2
    assert "`lr` is missing" in capsys.readouterr().err


def test_runs_are_simulated_and_compared_with_the_theory(run, tmp_path):
    code, out, _ = run(
        "simulate", BIASED, "--lr", "0.1", "--until", "8", "--evaluations", "6", "--d", "150", "--seeds", "6", "--against",
        "theory", "--to", str(tmp_path / "run"), "--save", str(tmp_path / "both.svg"),
    )  # fmt: skip
    assert code == 0
    assert "mean loss of 6 seeds" in out
    assert "Compared with theory" in out
    assert (tmp_path / "both.svg").exists()
    kept = tm.load(tmp_path / "run")
    assert set(kept) == {"loss", "class_loss"}
    assert kept["class_loss"].sizes["class"] == 3


def test_simulated_accuracies_are_asked_for_by_name(run):
    code, out, _ = run(
        "simulate", "classes=3, softmax=True", "--lr", "0.3", "--until", "2", "--evaluations", "3", "--d", "60",
        "--seeds", "3", "--curve", "error", "--json",
    )  # fmt: skip
    assert code == 0
    assert {"loss", "class_loss", "error"} <= set(json.loads(out)["final"])


FILE = """
[problem]
weight = { old = 0.6, young = 0.4 }
variance = { old = 0.5, young = 1.5 }
means = { old = [0, 0, 0.3], young = [0, 0, -0.3] }
label_bias = { old = { cat = 0.2, dog = 0.0, cow = 0.0 }, young = { cat = 0.0, dog = 0.0, cow = 0.0 } }

[problem.teachers]
old = { cat = [1, 0, 0], dog = [0, 1, 0], cow = [0, 0, 1] }
young = { cat = [0, 1, 0], dog = [1, 0, 0], cow = [0, 0, 1] }

[sgd]
lr = 0.1
weights = { young = 2.0 }

[times]
until = 20.0
evaluations = 10
"""


def test_a_file_has_any_groups_and_classes(run, tmp_path):
    (tmp_path / "problem.toml").write_text(FILE)
    given = ("--config", str(tmp_path / "problem.toml"))
    code, out, _ = run("predict", *given)
    assert code == 0
    assert "Class cat between groups:" in out
    code, out, _ = run("simulate", *given, "--d", "60", "--seeds", "3", "--json")
    assert code == 0
    assert json.loads(out)["final"]["class_loss"]["dims"] == ["group", "class", "seed"]
    code, _, err = run("equilibrium", *given)
    assert (code, "`equilibrium` is for two labels" in err) == (2, True)


def test_a_file_by_numbers_is_overridden_by_options(run, tmp_path):
    (tmp_path / "problem.toml").write_text(
        "[problem]\nclasses = 3\nrho = 0.7\nclass_bias = [0.2, 0.0, -0.2]\n[sgd]\nlr = 0.1\n[times]\nevaluations = 4\n"
    )
    code, out, _ = run("predict", "classes=3, rho=0.6", "--config", str(tmp_path / "problem.toml"), "--json")
    assert code == 0
    assert json.loads(out)["final"]["class_loss"]["dims"] == ["group", "class"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("classes = 1", "`classes` should be an integer of at least 2. Found classes = 1"),
        ("similarity = 0.5", "`similarity` needs `classes`"),
        ("classes = 3\nthresholds = [0.1, 0.2]", "`thresholds` is for two labels"),
        ("classes = 3\nvariance = { a = 1.0 }", "`variance` should be two numbers beside `classes`"),
        ("classes = 3\nweight = { a = 1.0 }\ngram = [[1.0]]", "`classes` should list the classes beside `gram`"),
        ("weight = { a = 1.0 }\nteachers = { a = { x = [1], y = [2] } }", "also needs `variance`"),
        (
            "weight = { a = 1.0 }\nvariance = { a = 1.0 }\nmeans = { a = [0] }\nteachers = { a = { x = [1] } }",
            "at least 2 classes. Found 1",
        ),
    ],
)
def test_bad_files(run, tmp_path, text, said):
    (tmp_path / "problem.toml").write_text(f"[problem]\n{text}\n[sgd]\nlr = 0.1\n")
    code, _, err = run("predict", "--config", str(tmp_path / "problem.toml"))
    assert code == 2
    assert said in err


TRAINING = """
[data]
source = "problem"
d = 30
points = 300
held_out = 200

[problem]
classes = 3
rho = 0.7
overlap = 0.5

[model]
hidden = []

[training]
lr = 0.01
steps = 40
batch = 1
loss = "{loss}"

[evaluations]
per_decade = 3
"""


@pytest.mark.parametrize("loss", ["square", "cross-entropy"])
def test_networks_are_trained_on_the_same_problem(run, tmp_path, loss):
    (tmp_path / "training.toml").write_text(TRAINING.format(loss=loss))
    code, _, _ = run("train", str(tmp_path / "training.toml"), "--to", str(tmp_path / "run"))
    assert code == 0
    kept = tm.load(tmp_path / "run")
    assert kept["class_accuracy"].sizes == {"time": kept["loss"].sizes["time"], "group": 2, "class": 3}
    assert (kept["loss"].isel(time=-1) < kept["loss"].isel(time=0)).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("d = 30\n", ""), '[data] of source = "problem" needs `d`'),
        (("held_out = 200", "held_out = 0.2"), "held_out should be a number of points"),
        (('source = "problem"', 'source = "digits"'), '[problem] is drawn from with [data] source = "problem"'),
        (("classes = 3", "classes = 1"), "at least 2. Found classes = 1"),
        (("[problem]\nclasses = 3\nrho = 0.7\noverlap = 0.5\n", ""), "needs a table [problem]"),
        (("held_out = 200", 'label = "y"'), "unknown key 'label'"),
    ],
)
def test_bad_training_files(run, tmp_path, change, said):
    (tmp_path / "training.toml").write_text(TRAINING.format(loss="square").replace(*change))
    code, _, err = run("train", str(tmp_path / "training.toml"))
    assert code == 2
    assert said in err


def test_two_labels_are_trained_too(run, tmp_path):
    text = TRAINING.format(loss="square").replace("classes = 3\nrho = 0.7\noverlap = 0.5", 'case = "no-bias"')
    (tmp_path / "training.toml").write_text(text)
    code, _, _ = run("train", str(tmp_path / "training.toml"), "--to", str(tmp_path / "run"))
    assert code == 0
    assert "class_accuracy" not in tm.load(tmp_path / "run")
