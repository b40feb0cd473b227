"""Lead: who leads in turn, over seeds, over points, and where nothing is decided."""

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.record import Origin, Trajectory
from tiltmeter_lab.shared.lead import crossing_distance, final_gap, leaders, of_each_seed

TIMES = np.array([0.0, 1.0, 2.0, 4.0, 8.0])


def run(gap, scatter=0.001, points=0.001, seeds=6):
    """Group a is worse off by `gap` at each time; seeds scatter evenly about that."""
    spread = scatter * np.linspace(-1.0, 1.0, seeds)
    both = np.where(TIMES == 0.0, 1.5, 0.5)[:, None]
    a = both + np.asarray(gap)[:, None] + spread
    values = np.stack([a, np.broadcast_to(both, a.shape)], axis=1)
    coords = {"time": TIMES, "group": ["a", "b"], "seed": range(seeds)}
    loss = xr.DataArray(values, dims=("time", "group", "seed"), coords=coords, attrs={"better": "lower"})
    return Trajectory({"loss": loss, "loss_se": xr.full_like(loss, points)}, "step", Origin("training"))


def test_the_order_of_leaders():
    assert leaders(run([0.0, 0.1, 0.1, -0.1, -0.1])) == "ba"
    assert leaders(run([0.1] * 5)) == "b"
    assert leaders(run([0.1, 0.1, -0.1, -0.1, 0.1], scatter=1.0)) == ""


def test_few_points_hide_what_seeds_agree_on():
    assert tm.leaders(run([0.01] * 5, scatter=0.001, points=0.001), "loss").last == "b"
    assert tm.leaders(run([0.01] * 5, scatter=0.001, points=0.02), "loss").last == ""


def test_every_seed_alone_has_the_error_of_its_points():
    sure, unsure = (of_each_seed(run([0.01] * 5, scatter=0.0, points=points)) for points in (0.001, 0.1))
    assert [one.last for one in sure] == ["b"] * 6
    assert [one.last for one in unsure] == [""] * 6


def test_the_final_gap_has_an_error_over_seeds():
    gap, error = final_gap(run([0.1] * 4 + [0.3], scatter=0.03, seeds=2))
    assert (gap, error) == pytest.approx((0.3, 0.03))


def crossing_run(times, seeds=12):
    """Seeds whose losses cross near t = 4 (in the mean, exactly): group "+" leads first."""
    shifts = np.linspace(-0.02, 0.02, seeds)
    gap = np.log(times)[:, None] - np.log(4.0) + shifts
    loss = np.stack([1.0 + gap, np.ones_like(gap)], axis=1)
    coords = {"time": times, "group": ["+", "-"], "seed": range(seeds)}
    curve = xr.DataArray(loss, coords, ("time", "group", "seed"), attrs={"better": "lower"})
    return Trajectory({"loss": curve}, "t", Origin("simulation", seeds=tuple(range(seeds))))


def test_crossings_of_the_mean_are_compared_with_exact_times():
    run = crossing_run(np.geomspace(0.5, 30.0, 40))
    distance, error = crossing_distance(run, [4.0], "+-")
    assert distance == pytest.approx(0.0, abs=1e-9)
    spread = np.linspace(-0.02, 0.02, 12).std(ddof=1) / 12**0.5  # of the log of the time
    assert error == pytest.approx(spread, rel=0.02)
    assert crossing_distance(run, [5.0], "+-")[0] == pytest.approx(0.2, abs=1e-6)
    far, unknown = crossing_distance(run, [4.0], "-+")
    assert far == 1.0
    assert np.isnan(unknown)
