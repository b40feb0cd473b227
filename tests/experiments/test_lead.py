"""Lead: first and last leader, over seeds, over points, and where nothing is decided."""

import numpy as np
import pytest
import xarray as xr

from tiltmeter.experiments.shared.lead import lead, leads, on_all_points, share
from tiltmeter.record import Origin, Trajectory

TIMES = np.array([0.0, 1.0, 2.0, 4.0, 8.0])


def run(gap, scatter=0.001, points=0.001, seeds=4):
    """Group a is worse off by `gap` at each time; seeds scatter evenly about that."""
    spread = scatter * np.linspace(-1.0, 1.0, seeds)
    a = 0.5 + np.asarray(gap)[:, None] + spread
    values = np.stack([a, np.full_like(a, 0.5)], axis=1)
    coords = {"time": TIMES, "group": ["a", "b"], "seed": range(seeds)}
    loss = xr.DataArray(values, dims=("time", "group", "seed"), coords=coords, attrs={"better": "lower"})
    return Trajectory({"loss": loss, "loss_se": xr.full_like(loss, points)}, "step", Origin("training"))


def test_first_and_last_leader():
    found = lead(run([0.0, 0.1, 0.1, -0.1, -0.1]))
    assert (found.first, found.last, found.changes) == ("b", "a", True)
    assert found.crossings == pytest.approx((3.0,))
    assert str(found) == "b leads first and a last (crossing at 3)"
    assert str(lead(run([0.1] * 5))) == "b leads throughout"


def test_nothing_is_said_inside_the_noise():
    found = lead(run([0.1, 0.1, -0.1, -0.1, 0.1], scatter=1.0))
    assert (found.first, found.last, found.crossings) == ("", "", ())
    assert str(found) == "nobody leads beyond doubt"


def test_few_points_hide_what_seeds_agree_on():
    one = run([0.01] * 5, scatter=0.001, points=0.02)
    assert lead(one).last == "b"
    assert lead(on_all_points(one)).last == ""


def test_the_error_over_seeds_and_points_is_that_of_the_gap():
    one = run([0.1] * 5, scatter=0.03, points=0.04)
    both = on_all_points(one)["loss_se"]
    gap = np.sqrt((both**2).sum("group"))
    of_seeds = np.std(0.03 * np.linspace(-1, 1, 4), ddof=1) / 2
    np.testing.assert_allclose(gap, np.sqrt(2 * 0.04**2 + of_seeds**2))


def test_every_seed_alone_has_the_error_of_its_points():
    assert [one.last for one in leads(run([0.01] * 5, scatter=0.0, points=0.001))] == ["b"] * 4
    assert [one.last for one in leads(run([0.01] * 5, scatter=0.0, points=0.1))] == [""] * 4


def test_a_share_of_all_runs_is_not_certain():
    assert share([True] * 8)[0] == 1.0
    assert share([True] * 8)[1] > 0.05
