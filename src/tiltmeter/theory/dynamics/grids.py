"""Grids: who leads and how often the lead changes, for many problems at once, as labelled arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.names import NOBODY
from tiltmeter.pairs import AskedPair, groups_of, leader_sign, resolution, the_pair
from tiltmeter.record.labelled import labels_array
from tiltmeter.record.trajectory import Trajectory


def leader_on_grid(trajectory: Trajectory, curve: str = "loss") -> xr.DataArray:
    """Return the group that is best off, at every time and grid point ("": equal, or no value).

    >>> from tiltmeter import predict
    >>> from tiltmeter.theory import cases
    >>> leader_on_grid(predict(*cases.centred_crossing())).isel(time=[0, -1]).values.tolist()
    ['-', '+']

    Values are compared without a test: this is for exact theory. `leaders` judges a measured run.

    Args:
        trajectory: Result of `predict` over a grid of settings.
        curve: Name of the curve that is compared, such as "loss" or "error".
    """
    return leader_of(trajectory[curve], curve)


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


def crossing_count(trajectory: Trajectory, curve: str = "loss", pair: AskedPair | None = None) -> xr.DataArray:
    """Count the changes of lead between two groups over the recorded times, at every grid point.

    >>> from tiltmeter import predict
    >>> from tiltmeter.theory import cases
    >>> crossing_count(predict(*cases.three_phases())).item()
    2

    Two crossings between neighbouring times are not seen: choose the times closely enough.

    Args:
        trajectory: Result of `predict` over a grid of settings.
        curve: Name of the curve that is compared, such as "loss" or "error".
        pair: Two groups to compare; None: the only two there are.
    """
    values = trajectory[curve]
    leader_sign(curve, values)
    a, b = the_pair(values, pair)
    groups = groups_of(values)
    gap: Any = values.isel(group=groups.index(a), drop=True) - values.isel(group=groups.index(b), drop=True)
    sign = np.sign(np.where(np.abs(gap.values) > resolution(values), gap.values, 0.0)).astype(np.int8)
    # An undecided evaluation takes the sign before it, so that it neither hides nor adds a change.
    changes = np.zeros(sign.shape[1:], dtype=np.int64)
    last = sign[0]
    for now in sign[1:]:
        changes += (now * last) < 0
        last = np.where(now != 0, now, last)
    return gap.isel(time=0, drop=True).copy(data=changes).rename("crossings")  # type: ignore[no-any-return]
