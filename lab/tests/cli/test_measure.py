"""measure: sentences first, first and last value beside the null, files, JSON, and exit codes."""

import json

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter_lab.cli.measure import readings_of
from tiltmeter_lab.measures.catalogue import MEASURES, find
from tiltmeter_lab.measures.measure import example_of

torch = pytest.importorskip("torch")

SHORT = """
[model]
hidden = [8]

[training]
lr = 0.1
steps = 20
batch = 16

[evaluations]
per_decade = 2
"""


def test_a_measure_on_its_own_example(run, in_a_folder):
    code, out, _ = run("measure", "subgroup-auc", "--to", "run", "--save", "areas.svg")
    assert code == 0
    assert out.startswith("subgroup_auc (positives above negatives, both of the group): turned 0.")
    assert "null, last" in out
    assert "positive_aeg (positives of the group above positives of others, minus 1/2): turned" in out
    assert "null: 0: the same scores as the others." in out
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
    assert first["first_time"] > 0  # the first evaluation has nothing to compare with


def test_curves_of_many_values_can_be_drawn_with_their_null(run, in_a_folder):
    (in_a_folder / "short.toml").write_text(SHORT)
    argv = ("measure", "gradient-pull", "short.toml", "--curve", "gradient_cosine", "--save", "cosine.svg")
    code, _, err = run(*argv)
    assert code == 0, err
    text = (in_a_folder / "cosine.svg").read_text()
    assert "turned vs upright" in text
    assert ">null<" in text
    assert ">pair<" in text or ">group<" not in text  # the legend names what the lines are


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


@pytest.mark.parametrize(
    ("name", "choice", "sentence"),
    [
        ("truncated-accuracy", "kept = 3", "[measure]: `kept` should be a list, each a whole number. Found kept = 3."),
        ("line-spectrum", 'lines = "many"', "[measure]: `lines` should be a whole number. Found lines = 'many'."),
        ("line-spectrum", "lines = true", "[measure]: `lines` should be a whole number. Found lines = True."),
        ("line-spectrum", 'window = "box"', '[measure]: `window` should be "none" or "hann". Found window = \'box\'.'),
        ("effective-rank", 'of = "gram"', "[measure]: `of` is an object of Python, which a file cannot hold."),
        ("frequency-error", "target = 3", "[measure]: `target` is an object of Python, which a file cannot hold."),
        ("randomised", "features = {left = [99]}", "Set 'left' should list coordinates from 0 to 63. Found [99]."),
        ("sharpness", "mass = 1", "unknown key 'mass'. There are: count, iterations, probes, smallest, seed."),
        ("early-alignment", "_known = {}", "unknown key '_known'"),
    ],
)
def test_choices_of_the_wrong_kind_end_with_one_sentence(run, in_a_folder, name, choice, sentence):
    (in_a_folder / "bad.toml").write_text(SHORT + f"\n[measure]\n{choice}\n")
    code, _, err = run("measure", name, "bad.toml")
    assert code == 2
    assert sentence in err
    assert "Traceback" not in err


def test_lists_and_tables_are_choices(run, in_a_folder):
    (in_a_folder / "sets.toml").write_text(
        SHORT + "\n[measure]\nfeatures = {top = [0, 1, 2], low = [60, 63]}\ndraws = 2\n"
    )
    code, out, err = run("measure", "randomised", "sets.toml", "--json")
    assert code == 0, err
    assert json.loads(out)["curves"][0]["labels"]["feature"] == ["top", "low"]


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_can_be_said_and_drawn(name):
    measure, model, data = example_of(find(name))
    with tm.Probe(model, data, watch=tm.Watch(when=tm.record.every(1), measures=(measure,)), budget=None) as probe:
        probe(0)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(0.9)
    trajectory = probe.trajectory()
    found = readings_of(trajectory)
    assert found
    for one in found:
        assert one.sentence.endswith(".")
        assert all(len(line) == 4 for line in one.lines)
        text = one.to_json()
        assert json.loads(json.dumps(text, allow_nan=False)) == text
        if not isinstance(text["null"], str):
            assert np.shape(text["null"]) == np.shape(text["last"])
        drawn = json.dumps(one.picture(trajectory.clock).to_dict())
        assert isinstance(one.null, str) or "null" in drawn


def test_a_null_without_a_dimension_of_the_curve_stands_beside_every_value(run, in_a_folder):
    (in_a_folder / "short.toml").write_text(SHORT + "\n[measure]\nkept = [1, 8]\n")
    code, out, err = run("measure", "truncated-accuracy", "short.toml")
    assert code == 0, err
    rows = [line.split() for line in out.splitlines() if line.strip().startswith("truncated_accuracy  ")]
    assert [row[1:3] for row in rows] == [["1", "turned"], ["1", "upright"], ["8", "turned"], ["8", "upright"]]
    assert rows[0][-1] == rows[2][-1]
