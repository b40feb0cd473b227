"""Common looks: the times at which all runs of a scorecard are known, so that nothing is interpolated."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import reduce

import numpy as np
import xarray as xr

from tiltmeter.analysis.exact import exact_curve
from tiltmeter.analysis.scorecard.group_values import GroupValues, every_group_values, group_values
from tiltmeter.record.trajectory import Trajectory


def common_looks(runs: Mapping[str, Trajectory], curve: str) -> dict[str, GroupValues]:
    """The curve of every run at the same looks, groups in the order of the first run.

    Exact curves are evaluated at the looks of all runs. Measured ones are compared at the looks that all of them have.
    """
    found = every_group_values(runs, curve)
    own = [one.times for one in found.values()]
    if all(np.array_equal(own[0], times) for times in own[1:]):
        return found
    start, end = max(times[0] for times in own), min(times[-1] for times in own)
    measured = [one.times for one in found.values() if not one.exact]
    looks = reduce(np.intersect1d, measured) if measured else np.union1d(reduce(np.union1d, own), [start, end])
    looks = looks[(looks >= start) & (looks <= end)]
    if len(looks) < 2:
        raise ValueError(
            f"Runs of a scorecard should have two looks in common, at least. Found {len(looks)} between {start:.6g} "
            f"and {end:.6g}. Record them at the same times."
        )
    return {name: at_looks(runs[name], curve, one.groups, looks) for name, one in found.items()}


def at_looks(trajectory: Trajectory, curve: str, groups: tuple[Hashable, ...], looks: np.ndarray) -> GroupValues:
    """One curve at these looks, as it was recorded there or, for an exact curve, evaluated there."""
    return group_values(restricted(trajectory, curve, looks), curve, groups)


def restricted(trajectory: Trajectory, curve: str, looks: np.ndarray) -> Trajectory:
    """The run with this curve (and its standard error) at these looks only."""
    values = trajectory[curve]
    if np.array_equal(values.coords["time"].values, looks):
        return trajectory
    exact = exact_curve(trajectory, curve) if "seed" not in values.dims else None
    if exact is not None:
        return trajectory.replace({curve: exact(looks)}, trajectory.evaluate)
    names = [name for name in (curve, f"{curve}_se") if name in trajectory]
    return trajectory.replace({name: _at(trajectory[name], looks) for name in names})


def _at(values: xr.DataArray, looks: np.ndarray) -> xr.DataArray:
    missing = looks[~np.isin(looks, values.coords["time"].values)]
    if missing.size:
        raise LookupError(f"Curve {values.name!r} has no look at {missing[0]:.6g}.")
    return values.sel(time=looks)
