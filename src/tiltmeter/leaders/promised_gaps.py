"""Promised gaps: the gap of every pair of groups in a forecast, with the limits that it promises."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import combinations

import numpy as np
import xarray as xr

from tiltmeter.record import Trajectory


def gap_band(trajectory: Trajectory, curve: str) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray] | None:
    """The gap of every pair with its promised limits, each (time, pair); None where nothing is promised.

    >>> coords = {"time": [0, 10], "group": ["a", "b"]}
    >>> loss = xr.DataArray([[0.7, 0.7], [0.2, 0.5]], dims=("time", "group"), coords=coords)
    >>> from tiltmeter.record import Origin
    >>> gap_band(Trajectory({"loss": loss}, "step", Origin("forecast")), "loss") is None
    True

    Limits are NaN outside the promise. Pairs are named "a vs b", and the gap is the value of a minus that of b.
    """
    names = f"{curve}_gap_low", f"{curve}_gap_high"
    if curve not in trajectory or any(name not in trajectory for name in names):
        return None
    low, high = (trajectory[name] for name in names)
    values = trajectory[curve].transpose("time", "group").values
    gap = low.copy(
        data=np.stack([values[:, a] - values[:, b] for a, b in combinations(range(values.shape[1]), 2)], axis=1)
    )
    return gap, low, high


def pair_names(groups: list[Hashable]) -> list[str]:
    """The names of all pairs, in the order in which gaps are kept.

    >>> pair_names(["a", "b", "c"])
    ['a vs b', 'a vs c', 'b vs c']
    """
    return [f"{a} vs {b}" for a, b in combinations(groups, 2)]
