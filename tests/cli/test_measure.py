"""measure: sentences first, first and last value beside the null, files, JSON, and exit codes."""

import json

import pytest

import tiltmeter as tm
from tiltmeter.measures.catalogue import MEASURES

torch = pytest.importorskip("torch")

SHORT = """
[model]
hidden = [8]

[training]
lr = 0.1
steps = 20
batch = 16

[looks]
per_decade = 2
"""


def test_a_measure_on_its_own_example(run, in_a_folder):
    code, out, _ = run("measure", "subgroup-auc", "--to", "run", "--save", "areas.svg")
    assert code == 0
    assert out.startswith("subgroup_auc (positives above negatives, both of the group): turned 0.")
    assert "null, last" in out
    assert "positive_aeg (positives of the group above positives of others, minus 1/2): turned" in out
    assert "null: 0: scored like the others." in out
    assert (in_a_folder / "areas.svg").read_text().startswith("<svg")
    assert "subgroup_auc" in tm.load("run")


def test_a_file_with_choices_of_the_measure(run, in_a_folder):
    (in_a_folder / "short.toml").write_text(SHORT + "\n[measure]\npoints = 5\n")
    code, out, _ = run("measure", "opposing-signals", "short.toml", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["measure"] == "opposing-signals"
    first = next(curve for curve in found["curves"] if curve["curve"] == "opposing_concentration")
    assert first["null"] == pytest.approx(5 / 1794)
    assert first["first_time"] > 0  # the first look has nothing to compare with


def test_curves_of_many_values_can_be_drawn_with_their_null(run, in_a_folder):
    (in_a_folder / "short.toml").write_text(SHORT)
    argv = ("measure", "gradient-pull", "short.toml", "--curve", "gradient_cosine", "--save", "cosine.svg")
    code, _, err = run(*argv)
    assert code == 0, err
    assert "turned vs upright null" in (in_a_folder / "cosine.svg").read_text()


def test_the_list(run):
    code, out, _ = run("measure", "--list", "--json")
    assert code == 0
    assert [row["name"] for row in json.loads(out)] == list(MEASURES)
    code, out, _ = run("measure", "--list")
    assert out.startswith(f"{len(MEASURES)} measures; passes are forward passes")
    assert all(name in out for name in MEASURES)


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (("measure",), "Which measure?"),
        (("measure", "gravity"), "No measure 'gravity'"),
        (("measure", "opposing-signals", "nowhere.toml"), "No file nowhere.toml."),
        (("measure", "opposing-signals", "bad.toml"), "[measure]: unknown key 'mass'. There are: points."),
        (("measure", "subgroup-auc", "--curve", "loss"), "No curve 'loss' of subgroup-auc."),
    ],
)
def test_bad_input_ends_with_one_sentence(run, in_a_folder, argv, sentence):
    (in_a_folder / "bad.toml").write_text(SHORT + "\n[measure]\nmass = 5\n")
    code, _, err = run(*argv)
    assert code == 2
    assert sentence in err
