"""Kept points: the losses and decisions that a probe kept for every point, as curves that can be tested."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
import xarray as xr

from tiltmeter.analysis.simultaneous.point_curve import PointCurve
from tiltmeter.record.trajectory import Trajectory

#: Curves that are means of what is kept for each point.
JUDGED = ("loss", "error", "positive_rate", "tpr", "fpr")


@dataclass(frozen=True, eq=False)
class KeptPoints:
    """The points behind the curves of a run: the group of every point, and one number per point and look.

    With several seeds the values of a curve have shape (seeds, looks, points).
    """

    curves: tuple[PointCurve, ...]
    codes: np.ndarray
    groups: tuple[Hashable, ...]
    times: np.ndarray

    @property
    def seeds(self) -> int:
        """Runs that looked at these points."""
        values = self.curves[0].values
        return len(values) if values.ndim == 3 else 1

    def named(self, names: Iterable[str]) -> tuple[PointCurve, ...]:
        """The curves of these names, in the order asked for."""
        by_name = {curve.name: curve for curve in self.curves}
        return tuple(by_name[name] for name in names if name in by_name)


def kept_points(trajectory: Trajectory) -> KeptPoints | None:
    """Return what a run kept of its points; None if it kept nothing.

    `trajectory.points` may hold `loss` (numbers) and either `decided_positive` or, for several classes, `wrong` (truth
    values), each with dimensions time and point and the group of every point as a coordinate; `positive` says which
    points have the positive label. Looks from the first loss that is not finite are left out; so are seeds without any
    look before it.
    """
    points = trajectory.points
    if not any(name in points for name in ("loss", "decided_positive", "wrong")):
        return None
    arrays = {name: points[name] for name in ("loss", "decided_positive", "wrong") if name in points}
    first = next(iter(arrays.values()))
    if set(first.dims) - {"time", "point", "seed"}:
        return None  # a grid: select one point of it first
    times = first.coords["time"].values
    shown = next((curve for name, curve in trajectory.items() if name in JUDGED), None)
    for other in (*arrays.values(), *(() if shown is None else (shown,))):
        times = np.intersect1d(times, other.coords["time"].values)
    if shown is not None and "seed" in first.dims and "seed" in shown.dims:
        # Curves that hold only some seeds are tested with the points of those seeds.
        arrays = {name: array.sel(seed=shown.coords["seed"].values) for name, array in arrays.items()}
    values = {name: _ordered(array.sel(time=times)) for name, array in arrays.items()}
    if "loss" in values:
        times, values = _finite(times, values)
    if not len(times):
        return None
    groups = _groups(trajectory, first)
    labels = first.coords["group"].values.tolist()
    places = {label: place for place, label in enumerate(groups)}
    codes = np.array([places[label] for label in labels], dtype=np.int64)
    positive = first.coords["positive"].values.astype(bool) if "positive" in first.coords else None
    return KeptPoints(tuple(_curves(values, positive)), codes, groups, times)


def _ordered(array: xr.DataArray) -> np.ndarray:
    dims = ("seed", "time", "point") if "seed" in array.dims else ("time", "point")
    return np.ascontiguousarray(array.transpose(*dims).values)


def _finite(times: np.ndarray, values: dict[str, np.ndarray]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    finite = np.isfinite(values["loss"]).all(-1)
    if finite.ndim == 2:
        kept = finite.all(1) if finite.all(1).any() else finite[:, 0]
        values = {name: array[kept] for name, array in values.items()}
        finite = finite[kept].all(0)
    count = len(times) if finite.all() else int(np.argmin(finite))
    return times[:count], {name: array[..., :count, :] for name, array in values.items()}


def _groups(trajectory: Trajectory, points: xr.DataArray) -> tuple[Hashable, ...]:
    """Groups in the order of the curves."""
    for curve in trajectory.values():
        if "group" in curve.dims:
            return tuple(curve.coords["group"].values.tolist())
    return tuple(dict.fromkeys(points.coords["group"].values.tolist()))


def _curves(values: dict[str, np.ndarray], positive: np.ndarray | None) -> Iterable[PointCurve]:
    if "loss" in values:
        yield PointCurve("loss", values["loss"])
    if "wrong" in values:
        yield PointCurve("error", values["wrong"])
    elif "decided_positive" in values and positive is not None:
        decided = values["decided_positive"]
        yield PointCurve("error", decided != positive)
        yield PointCurve("positive_rate", decided)
        yield PointCurve("tpr", decided, positive)
        yield PointCurve("fpr", decided, ~positive)
