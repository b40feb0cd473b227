"""Comparison of runs: a sentence each, the area by hand, and who is undecided."""

import numpy as np
import pytest
import xarray as xr

from tiltmeter import Origin, Trajectory, predict
from tiltmeter.analysis.comparison import comparison
from tiltmeter.problem import cases


def run(a, b, error):
    times = np.array([0.0, 1.0, 10.0, 100.0])
    dims, coords = ("time", "group"), {"time": times, "group": ["a", "b"]}
    values = np.stack([a, b], 1).astype(float)
    curves = {
        "loss": xr.DataArray(values, dims=dims, coords=coords),
        "loss_se": xr.DataArray(np.full(values.shape, error), dims=dims, coords=coords),
    }
    return Trajectory(curves, "step", Origin("training"))


def test_area_is_the_gap_over_decades():
    row = comparison([run([3, 2, 1, 1], [3, 1, 1, 2], 0.01)], ["mine"]).rows[0]
    assert row.area == pytest.approx(0.5 + 0.5)  # 1 -> 0 over one decade, 0 -> 1 over the next
    assert (row.first_leader, row.last_leader) == ("b", "a")  # level at the start: the first look that decides
    assert (row.worst_group, row.worst, row.gap, row.mean) == ("b", 2.0, 1.0, 1.5)
    assert [crossing.leader_after for crossing in row.crossings] == ["a"]


def test_inside_the_noise_nobody_leads():
    row = comparison([run([3, 2, 1, 1], [3, 1, 1, 2], 10.0)], ["mine"]).rows[0]
    assert row.last_leader == ""
    assert "no leader is shown; no change of leader is shown" in str(
        comparison([run([3, 2, 1, 1], [3, 1, 1, 2], 10.0)], ["mine"])
    )


def test_a_lead_that_is_no_longer_shown_is_no_last_lead():
    text = str(comparison([run([3, 2, 1, 1], [3, 1, 2, 1], 0.01)], ["mine"]))
    assert text.startswith("mine: no leader is shown at the end (the last that is shown is a); the lead changes at ")
    assert "a leads last" in str(comparison([run([3, 2, 1, 1], [3, 1, 2, 2], 0.01)], ["mine"]))


def test_a_worst_group_is_named_only_if_it_is_shown():
    unsure = comparison([run([3, 2, 1, 1], [3, 1, 1, 2], 10.0)], ["mine"])
    assert (unsure.rows[0].worst_group, unsure.rows[0].could_be_worst) == ("", ("a", "b"))
    assert "could be worst: a, b (worst loss seen 2)" in str(unsure)
    sure = comparison([run([3, 2, 1, 1], [3, 1, 1, 2], 0.01)], ["mine"])
    assert sure.rows[0].could_be_worst == ("b",)
    assert "worst group b (loss 2)" in str(sure)


def test_no_runs():
    with pytest.raises(ValueError, match="needs at least one run"):
        comparison([], [])


def test_seeds_are_averaged():
    theory = predict(*cases.centred_crossing())
    loss = theory["loss"]
    noise = xr.DataArray([-1e-3, 1e-3], dims="seed", coords={"seed": [0, 1]})
    many = Trajectory({"loss": (loss + noise).transpose("time", "group", "seed")}, "t", Origin("simulation"))
    assert comparison([many], ["x"]).rows[0].area == pytest.approx(comparison([theory], ["x"]).rows[0].area, rel=1e-9)
