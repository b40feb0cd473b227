"""The comparison of cures: its tasks, its grid, and the rule that selects settings and evaluations."""

import numpy as np
import pytest
import xarray as xr

pytest.importorskip("torch")

from tiltmeter import Trajectory
from tiltmeter.interventions import INTERVENTIONS
from tiltmeter.record import Origin
from tiltmeter_lab.interventions import INTERVENTIONS as OF_THE_LAB
from tiltmeter_lab.named.cures import Setting, _trained
from tiltmeter_lab.shared.cell_tasks import ATTRIBUTE, CELLS, CONFLICTING, Sizes, inputs_of_attribute, parts
from tiltmeter_lab.shared.cure_cards import chosen, interventions_of, label, needs_of
from tiltmeter_lab.shared.cure_grid import PLAIN, cure_grid
from tiltmeter_lab.shared.two_held_out import CHOOSE, JUDGE, both_held_out, evaluated

#: Not a method of its own; see `cure_grid`.
LEFT_OUT = {"PullSchedule", "MedianGradient", "PrunedEasy", "Reweighed"}  # the last three came after the grid was run
SMALL = Sizes(200, 40, 40, 60)


def test_every_law_of_the_package_is_in_the_grid_or_left_out_by_name():
    grid = cure_grid(100, misleading=(0,))
    tried = {type(law).__name__ for settings in grid.values() for laws in settings for law in interventions_of(laws)}
    assert tried | LEFT_OUT == {*INTERVENTIONS, *OF_THE_LAB}
    assert not tried & LEFT_OUT


@pytest.mark.parametrize("task", ["toy", "digits"])
def test_the_shortcut_holds_in_training_alone(task):
    made = parts(task, 3, SMALL, aligned=0.9)
    shares = {name: sum(part.sizes[cell] for cell in CONFLICTING) / len(part) for name, part in vars(made).items()}
    assert shares["train"] == pytest.approx(0.1, abs=0.01)
    assert all(shares[name] == pytest.approx(0.5, abs=0.03) for name in ("validation", "choose", "judge"))
    assert [len(part) for part in vars(made).values()] == [200, 40, 40, 60]
    for (own, attribute), cell in CELLS.items():
        assert set(made.train.y[made.train.of_group(cell)]) == {own}
        assert ATTRIBUTE[cell] == attribute


def test_parts_share_no_point_and_seeds_share_no_draw():
    one, two = parts("digits", 0, SMALL), parts("digits", 1, SMALL)
    points = [row.tobytes() for part in vars(one).values() for row in part.x[:, :64]]
    assert len(set(points)) == len(points)
    assert not np.array_equal(one.train.x, two.train.x)
    np.testing.assert_array_equal(one.judge.x, parts("digits", 0, SMALL).judge.x)


def test_the_attribution_prior_is_told_inputs_that_say_the_attribute_alone():
    assert "attribution prior" not in cure_grid(100, inputs_of_attribute("coloured-mnist"))
    for task in ("toy", "digits"):
        data = parts(task, 0, SMALL).judge
        attribute = np.array([ATTRIBUTE[data.groups[code]] for code in data.codes])
        told = inputs_of_attribute(task)
        with np.errstate(invalid="ignore"):  # some pixels are always empty
            strength = np.abs(np.corrcoef(data.x.T, attribute)[-1, :-1])
        assert set(np.flatnonzero(strength > 0.9)) == set(told)


@pytest.mark.parametrize("name", ["group threshold", "group temperature", "fairness penalty", "MGDA"])
def test_laws_that_answer_or_compare_by_group_train_on_cells(name):
    pytest.importorskip("fairret")
    pytest.importorskip("torchjd")
    law = cure_grid(20)[name][0]
    run = _trained("toy", law, Setting(steps=20, seeds=1), {0: parts("toy", 0, Sizes(400, 100, 60, 60))})
    assert np.isfinite(run["error"].values).all()


def test_two_looks_are_taken_apart_again():
    made = parts("toy", 0, SMALL)
    both = both_held_out(made)
    assert len(both) == 100
    np.testing.assert_array_equal(
        both.x[both.of_group(f"{JUDGE}{CONFLICTING[0]}")], made.judge.x[made.judge.of_group(CONFLICTING[0])]
    )


def run(choose, judge):
    """A run with two groups and these errors, (time, group, seed), of the points that choose and that judge."""
    values = np.concatenate([np.asarray(choose), np.asarray(judge)], axis=1)
    groups = [f"{kind}{group}" for kind in (CHOOSE, JUDGE) for group in "ab"]
    coords = {"time": np.arange(len(values)), "group": groups, "seed": np.arange(values.shape[2])}
    return Trajectory({"error": xr.DataArray(values, coords, ("time", "group", "seed"))}, "step", Origin("training"))


def test_settings_and_looks_are_chosen_by_points_that_do_not_judge():
    good, bad = [[[0.5], [0.5]], [[0.1], [0.2]], [[0.3], [0.1]]], [[[0.5], [0.5]], [[0.4], [0.4]], [[0.6], [0.6]]]
    better_where_it_counts_not = [[[0.0], [0.0]]] * 3
    runs = {
        label("toy", PLAIN, 0): run(bad, bad),
        label("toy", "law", 0): run(bad, better_where_it_counts_not),
        label("toy", "law", 1): run(good, [[[0.9], [0.1]], [[0.7], [0.3]], [[0.2], [0.2]]]),
        label("digits", "law", 0): run(good, good),
    }
    found = chosen(runs, "toy")
    assert list(found) == [PLAIN, "law"]
    assert found["law"].setting == 1
    np.testing.assert_allclose(found["law"].errors, [[0.7], [0.3]])
    np.testing.assert_allclose(found["law"].worst, [0.7])
    assert evaluated(runs[label("toy", "law", 1)], JUDGE)["error"].coords["group"].values.tolist() == ["a", "b"]


def test_a_run_that_diverged_is_not_chosen():
    lost = np.full((3, 2, 1), np.nan)
    runs = {
        label("toy", "law", 0): run(lost, lost),
        label("toy", "law", 1): run([[[0.9], [0.9]]] * 3, [[[0.8], [0.8]]] * 3),
    }
    assert chosen(runs, "toy")["law"].setting == 1


def test_what_laws_need():
    assert needs_of([PLAIN, "JTT", "group DRO", "DFR"]) == {
        PLAIN: "no groups",
        "JTT": "no groups",
        "group DRO": "training groups",
        "DFR": "validation groups",
    }
