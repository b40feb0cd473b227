"""A crossing inside the noise is said to be undecided."""

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter import Trajectory
from tiltmeter.record import Origin


def run(gap, error):
    times = np.arange(1.0, len(gap) + 1)
    dims, coords = ("time", "group"), {"time": times, "group": ["a", "b"]}
    gap = np.asarray(gap, dtype=float)
    curves = {
        "loss": xr.DataArray(np.stack([gap, 0 * gap], 1), dims=dims, coords=coords),
        "loss_se": xr.DataArray(np.full((len(gap), 2), error / 2**0.5), dims=dims, coords=coords),
    }
    return Trajectory(curves, "step", Origin("training"))


def test_a_clear_change_is_a_crossing_and_nothing_is_undecided():
    found = tm.leaders(run([5, 1, -1, -5], error=1.0), "loss")
    assert len(found.changes) == 1
    assert found.undecided == ()


def test_a_change_of_sign_in_the_noise_is_undecided_and_no_crossing():
    found = tm.leaders(run([5, 4, 1, -1, 0.5, 5, 6], error=1.0), "loss")
    assert len(found.changes) == 0
    assert found.headline.claim.startswith("Group b has the lower loss from between steps 5 and 6 to the end.")
    assert "Bonferroni" in str(found)
    assert [(doubt.low, doubt.high, doubt.pair) for doubt in found.undecided] == [(2.0, 6.0, ("a", "b"))]
    assert str(found.undecided[0]) == "not clear between 2 and 6 whether a or b leads"


def test_the_beginning_and_the_end_may_be_undecided():
    found = tm.leaders(run([1, -1, 5, 5, 1, -1], error=1.0), "loss")
    assert [(doubt.low, doubt.high) for doubt in found.undecided] == [(1.0, 3.0), (4.0, 6.0)]


def test_without_standard_errors_every_look_counts():
    measured = run([5, 1, -1, 5], error=1.0)
    assert len(tm.leaders(measured.replace({"loss": measured["loss"]}), "loss").changes) == 2
