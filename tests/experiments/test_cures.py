"""The comparison of cures: its tasks, its grid, and the rule that selects settings and looks."""

import numpy as np
import pytest
import xarray as xr

pytest.importorskip("torch")

from tiltmeter import Origin, Trajectory
from tiltmeter.experiments.shared.cell_tasks import ATTRIBUTE, CELLS, CONFLICTING, Sizes, parts
from tiltmeter.experiments.shared.cure_cards import chosen, label, needs_of
from tiltmeter.experiments.shared.cure_grid import PLAIN, cure_grid
from tiltmeter.experiments.shared.two_looks import CHOOSE, JUDGE, both_looks, looked
from tiltmeter.interventions import LAWS

#: Not methods of their own, or in need of what these tasks do not give; see `cure_grid`.
LEFT_OUT = {"PullSchedule", "JacobianDescent", "AttributionPrior", "FairnessPenalty"}
LEFT_OUT |= {"GroupThreshold", "GroupTemperature"}
SMALL = Sizes(200, 40, 40, 60)


def test_every_law_of_the_package_is_in_the_grid_or_left_out_by_name():
    tried = {type(law).__name__ for settings in cure_grid(100).values() for law in settings}
    assert tried | LEFT_OUT == set(LAWS)
    assert not tried & LEFT_OUT


@pytest.mark.parametrize("task", ["toy", "digits"])
def test_the_shortcut_holds_in_training_alone(task):
    made = parts(task, 3, SMALL, aligned=0.9)
    shares = {name: sum(part.sizes[cell] for cell in CONFLICTING) / len(part) for name, part in vars(made).items()}
    assert shares["train"] == pytest.approx(0.1, abs=0.01)
    assert all(shares[name] == pytest.approx(0.5, abs=0.03) for name in ("held_out", "choose", "judge"))
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


def test_two_looks_are_taken_apart_again():
    made = parts("toy", 0, SMALL)
    both = both_looks(made)
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
    assert looked(runs[label("toy", "law", 1)], JUDGE)["error"].coords["group"].values.tolist() == ["a", "b"]


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
        "DFR": "held-out groups",
    }
