"""The study of forecasts: its tasks, its scores against hand-made runs, its clustered errors."""

from collections import Counter

import numpy as np
import pytest
import xarray as xr

pytest.importorskip("torch")

from tiltmeter.leaders.phases import Crossing
from tiltmeter.record import Origin, Trajectory
from tiltmeter_lab.shared.clustered import clustered
from tiltmeter_lab.shared.route_scores import Truth, pair_score, pilot_told
from tiltmeter_lab.shared.route_tasks import CALIBRATION, JUDGED, draw_route_task

STEPS = np.array([0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])


def run(gap, source="training"):
    """Two groups whose losses fall, with this gap at every evaluation."""
    level = np.linspace(0.7, 0.3, len(STEPS))
    losses = np.stack([level + np.asarray(gap) / 2, level - np.asarray(gap) / 2], 1)
    loss = xr.DataArray(losses, dims=("time", "group"), coords={"time": STEPS, "group": ["a", "b"]})
    return Trajectory({"loss": loss}, "step", Origin(source))


def truth(gap, *found):
    values = xr.DataArray(np.asarray(gap)[1:], dims="time", coords={"time": STEPS[1:]})
    return Truth(("a", "b"), values, int(np.sign(gap[-1])), found)


def test_tasks_that_judge_and_calibrate_are_different_and_balanced():
    assert not set(JUDGED) & set(CALIBRATION)
    for numbers in (JUDGED, CALIBRATION):
        tasks = [draw_route_task(number) for number in numbers]
        assert len(tasks) >= 24
        assert set(Counter(task.data for task in tasks).values()) == {len(tasks) // 6}
        assert sum(task.optimiser == "SGD" for task in tasks) == len(tasks) // 2
        assert sum(not task.perceptron for task in tasks) == len(tasks) // 4
        assert sum(task.cross_entropy for task in tasks) == len(tasks) // 3
        assert all(1e-4 <= task.lr <= 1e-3 for task in tasks)
    # Networks do not go with one optimiser.
    assert {task.optimiser for task in map(draw_route_task, JUDGED) if not task.perceptron} == {"SGD", "Adam", "AdamW"}


def test_a_crossing_is_told_within_the_factor_and_in_its_direction():
    real = np.linspace(0.1, -0.1, len(STEPS))  # crosses at step 20
    crossing = Crossing(20.0, 18.0, 22.0, ("a", "b"), "b", "a")
    same, late, other = real, np.roll(real, 3), -real
    late[:3] = 0.1
    told = [pair_score(run(gap, "forecast"), run(real), truth(real, crossing)).told for gap in (same, late, other)]
    assert told == [(True,), (False,), (False,)]
    found = pair_score(run(same, "forecast"), run(real), truth(real, crossing))
    assert found.correlation == pytest.approx(1.0)
    assert found.off == pytest.approx(0.0, abs=1e-12)
    assert found.level == pytest.approx(1.0)
    assert found.right
    assert not pair_score(run(other, "forecast"), run(real), truth(real)).right


def test_a_pilot_tells_what_it_has_seen_and_where_its_line_leads():
    times = np.maximum(STEPS, 1.0)
    gap = 0.1 * np.log(times / 200.0)  # a straight line that crosses at 200; the pilot ends at 50
    at_200, at_20 = (Crossing(t, 0.95 * t, 1.05 * t, ("a", "b"), "a", "b") for t in (200.0, 20.0))
    assert pilot_told(truth(gap, at_200, at_20)) == (True, True)
    bent = np.where(STEPS <= 50, -0.1, gap)  # flat up to its end: nothing leads anywhere
    assert pilot_told(truth(bent, at_200)) == (False,)


def test_errors_are_those_of_tasks_not_of_runs():
    rng = np.random.default_rng(0)
    tasks = np.repeat(np.arange(40), 5)
    values = rng.normal(size=40)[tasks]  # five seeds that say the same
    mean, error = clustered(values, tasks, np.mean)
    assert mean == pytest.approx(values.mean())
    assert error == pytest.approx(values[::5].std() / np.sqrt(40), rel=0.1)
    assert clustered([1.0, 2.0], [0, 1]) == (1.5, None)
    assert np.isnan(clustered([], [])[0])
