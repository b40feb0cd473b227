"""Grids: who leads and how often the lead changes, for many problems at once, as labelled arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.analysis.pairs import AskedPair, groups_of, leader_sign, resolution, the_pair
from tiltmeter.analysis.standing import standing
from tiltmeter.names import NOBODY
from tiltmeter.record.labelled import labels_array
from tiltmeter.record.trajectory import Trajectory


def leader(trajectory: Trajectory, curve: str = "loss", level: float = 0.05) -> xr.DataArray:
    """Return the group that is best off, at every time and grid point ("": equal, not shown, or no value).

    >>> from tiltmeter import predict
    >>> from tiltmeter.problem import cases
    >>> leader(predict(*cases.centred_crossing())).isel(time=[0, -1]).values.tolist()
    ['-', '+']

    For a measured run, with one or several seeds, a group is named only where it is shown to be better off than every
    other, by bands that hold at all looks and for all pairs together with probability 1 - `level` (see `standing`).
    Theory and grids are compared value by value, without a test.
    """
    values = trajectory[curve]
    exact = trajectory.origin.source not in ("training", "forecast") and "seed" not in values.dims
    if exact or set(values.dims) - {"time", "group", "seed"} or values.sizes.get("group", 0) < 2:
        return leader_of(values, curve)
    return _shown(trajectory, curve, level)


def _shown(trajectory: Trajectory, curve: str, level: float) -> xr.DataArray:
    judged = standing(trajectory, curve, level=level, every_pair=True)
    times = judged.differences[0].times if judged.differences else trajectory[curve].coords["time"].values
    groups = groups_of(trajectory[curve])
    wins = np.zeros((len(times), len(groups)), dtype=int)
    for one in judged.differences:
        for group in one.pair:
            wins[:, groups.index(group)] += one.leader == group
    best = np.where(wins.max(1, initial=0) == len(groups) - 1, wins.argmax(1), -1)
    labels = labels_array([*groups, NOBODY])
    return xr.DataArray(labels[best], dims="time", coords={"time": times}, name="leader")


def leader_of(values: xr.DataArray, curve: str) -> xr.DataArray:
    """Return the group with the best value in a curve, at every point."""
    groups = groups_of(values)
    signed = values * leader_sign(curve, values)
    ordered = signed.transpose("group", ...).values
    labels = labels_array([*groups, NOBODY])
    best = np.argmin(np.where(np.isnan(ordered), np.inf, ordered), axis=0)
    clear = np.isfinite(ordered).any(0)
    if len(groups) > 1:
        first_two = np.partition(ordered, 1, axis=0)[:2]
        clear &= ~(first_two[1] - first_two[0] <= resolution(values))
    there = values.isel(group=0, drop=True)
    return xr.DataArray(labels[np.where(clear, best, -1)], dims=there.dims, coords=there.coords, name="leader")


def best_time(trajectory: Trajectory, curve: str = "loss") -> xr.DataArray:
    """Return the look at which each group is best off, at every grid point: early stopping by group.

    >>> from tiltmeter import Fixed, Flow, predict, teacher_mixture
    >>> problem = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> few = predict(problem, Flow(lr=1.0), np.geomspace(0.1, 100.0, 400), data=Fixed(2.0), curves=("loss",))
    >>> best_time(few).values.round(1)
    array([3.2, 0.6])

    It is one of the recorded times, so choose them closely enough.
    """
    values = trajectory[curve]
    groups_of(values)
    return (values * leader_sign(curve, values)).idxmin("time").rename("best_time")


def crossing_count(trajectory: Trajectory, curve: str = "loss", pair: AskedPair | None = None) -> xr.DataArray:
    """Count the changes of lead between two groups over the recorded times, at every grid point.

    >>> from tiltmeter import predict
    >>> from tiltmeter.problem import cases
    >>> crossing_count(predict(*cases.three_phases())).item()
    2

    Two crossings between neighbouring times are not seen: choose the times closely enough.
    """
    values = trajectory[curve]
    leader_sign(curve, values)
    a, b = the_pair(values, pair)
    groups = groups_of(values)
    gap: Any = values.isel(group=groups.index(a), drop=True) - values.isel(group=groups.index(b), drop=True)
    sign = np.sign(np.where(np.abs(gap.values) > resolution(values), gap.values, 0.0)).astype(np.int8)
    # An undecided look takes the sign before it, so that it neither hides nor adds a change.
    changes = np.zeros(sign.shape[1:], dtype=np.int64)
    last = sign[0]
    for now in sign[1:]:
        changes += (now * last) < 0
        last = np.where(now != 0, now, last)
    return gap.isel(time=0, drop=True).copy(data=changes).rename("crossings")  # type: ignore[no-any-return]
