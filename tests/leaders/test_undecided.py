"""A crossing inside the noise is said to be undecided."""

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter import Trajectory
from tiltmeter.record import Origin


def run(gap, error, sizes=None):
    times = np.arange(1.0, len(gap) + 1)
    dims, coords = ("time", "group"), {"time": times, "group": ["a", "b"]}
    gap = np.asarray(gap, dtype=float)
    curves = {
        "loss": xr.DataArray(np.stack([gap, 0 * gap], 1), dims=dims, coords=coords),
        "loss_se": xr.DataArray(np.full((len(gap), 2), error / 2**0.5), dims=dims, coords=coords),
    }
    if sizes is None:
        return Trajectory(curves, "step", Origin("training"))
    pairs = {"time": coords["time"], "pair": ["a vs b"]}  # a forecast that promises something
    for name, off in (("loss_gap_low", -error), ("loss_gap_high", error)):
        curves[name] = xr.DataArray((gap + off)[:, None], dims=("time", "pair"), coords=pairs)
    return Trajectory(curves, "step", Origin("forecast", {"held_out": {"sizes": sizes}}))


def test_a_clear_change_is_a_crossing_and_nothing_is_undecided():
    found = tm.leaders(run([5, 1, -1, -5], error=1.0), "loss")
    assert len(found.changes) == 1
    assert found.undecided == ()


def test_a_change_of_sign_in_the_noise_is_undecided_and_no_crossing():
    found = tm.leaders(run([5, 4, 1, -1, 0.5, 5, 6], error=1.0), "loss")
    assert len(found.changes) == 0
    assert found.headline.line.startswith("Group a has the higher loss: 6 against 0.")
    assert "Clear from step 6 of 7 on." in found.headline.since
    assert "Bonferroni" in str(found)
    assert [(doubt.low, doubt.high, doubt.pair) for doubt in found.undecided] == [(2.0, 6.0, ("a", "b"))]
    assert str(found.undecided[0]) == "not clear between 2 and 6 whether a or b leads"


def test_the_beginning_and_the_end_may_be_undecided():
    found = tm.leaders(run([1, -1, 5, 5, 1, -1], error=1.0), "loss")
    assert [(doubt.low, doubt.high) for doubt in found.undecided] == [(1.0, 3.0), (4.0, 6.0)]


def test_without_standard_errors_every_look_counts():
    measured = run([5, 1, -1, 5], error=1.0)
    assert len(tm.leaders(measured.replace({"loss": measured["loss"]}), "loss").changes) == 2


def test_a_forecast_names_no_leader_of_a_group_of_two_points():
    """The same limit as for a run, whose points are counted."""
    found = tm.leaders(run([50, 40, 60], error=1.0, sizes=[["a", 98], ["b", 2]]), "loss")
    assert found.headline.leader == ""
    assert "loss of b" in found.reasons
    enough = tm.leaders(run([50, 40, 60], error=1.0, sizes=[["a", 80], ["b", 20]]), "loss")
    assert enough.headline.claim == "Group a will have the higher loss: 60 against 0."


def test_a_forecast_without_a_promise_names_no_leader():
    ahead = run([50, 40, 60], error=1.0, sizes=[["a", 80], ["b", 80]])
    mute = ahead.replace({"loss": ahead["loss"], "loss_se": ahead["loss_se"]})
    assert str(tm.leaders(mute, "loss")) == "This forecast promises nothing, so nobody is named."
    assert tm.leaders(mute, "loss").differences == ()


def test_strange_sizes_in_a_file_are_no_sizes():
    for sizes in (3, [3], [["a"]], [["a", 1, 2]], [["a", "1"]], {"a": 1}, [[{"x": 1}, 1]]):
        found = tm.leaders(run([50, 40, 60], error=1.0, sizes=sizes), "loss")
        assert found.headline.claim == "Group a will have the higher loss: 60 against 0."


def test_a_group_too_small_for_a_band_counts_among_the_others_of_a_forecast():
    """By what a rate can be at all: the limits widen by its share of the others, here 5 of 105 points."""
    coords = {"time": [1.0, 2.0], "group": ["a", "b", "c"]}
    error = xr.DataArray([[0.5, 0.2, 0.4]] * 2, dims=("time", "group"), coords=coords)
    curves = {"error": error, "error_se": 0.0 * error + 0.01}
    pairs = {"time": coords["time"], "pair": ["a vs b", "a vs c", "b vs c"]}
    for name, off in (("error_gap_low", -0.05), ("error_gap_high", 0.05)):
        known = [0.3 + off, np.nan, np.nan]
        curves[name] = xr.DataArray([known] * 2, dims=("time", "pair"), coords=pairs)
    sizes = {"sizes": [["a", 100], ["b", 100], ["c", 5]]}
    judged = tm.leaders(Trajectory(curves, "step", Origin("forecast", {"held_out": sizes})), "error")
    one = judged["error", ("a", "all others")]
    assert one.lower[-1] <= (0.25 * 100 - 1.0 * 5) / 105 + 1e-9
    assert judged.headline.claim.startswith("Group a will be worse off than all others together: error 50 %")
    assert judged["error", ("a", "all others")].lower[-1] > 0
