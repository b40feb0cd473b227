"""Points: what a probe kept of every held-out point, as curves whose groups can be compared, and the comparisons."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.record.labelled import label_from_json
from tiltmeter.record.trajectory import Trajectory

#: A group with fewer points than this in the mean of a curve, or in the denominator of a rate, is not tested.
FEWEST = 20


@dataclass(frozen=True, eq=False)
class PointCurve:
    """The values of one curve before they are averaged: `values` has shape (evaluations, points).

    >>> decided = PointCurve("tpr", np.array([[True, False, True]]), where=np.array([True, True, False]))
    >>> decided.rate, decided.counts(np.array([0, 1, 1]), 2).tolist()
    (True, [1, 1])

    `where` says which points count (for a true-positive rate the positives; None: all). Boolean values make the curve a
    rate. Several runs on the same points have shape (seeds, evaluations, points); `averaged` is their mean.
    """

    name: str
    values: np.ndarray
    where: np.ndarray | None = None
    shares: bool = False

    def __post_init__(self) -> None:
        if self.values.ndim not in (2, 3):
            raise ValueError(
                f"The points of {self.name!r} should have shape (evaluations, points), or (seeds, evaluations, "
                "points). "
                f"Found shape {self.values.shape}."
            )
        if self.where is not None and self.where.shape != self.values.shape[-1:]:
            raise ValueError(
                f"`where` should say of each of {self.values.shape[-1]} points whether it counts. "
                f"Found shape {self.where.shape}."
            )
        if not self.rate and not np.isfinite(self.values).all():
            raise ValueError(f"The points of {self.name!r} should be finite. Found values that are not.")

    @property
    def rate(self) -> bool:
        """Whether every value is a decision, or a share of several decisions."""
        return self.shares or self.values.dtype == bool

    @property
    def averaged(self) -> PointCurve:
        """The mean over seeds, point by point; for decisions, the share of seeds."""
        return PointCurve(self.name, self.values.mean(0, dtype=np.float64), self.where, self.rate)

    @property
    def evaluations(self) -> int:
        return int(self.values.shape[-2])

    def counts(self, codes: np.ndarray, groups: int) -> np.ndarray:
        """Points that count, in every group."""
        counted = codes if self.where is None else codes[self.where]
        return np.bincount(counted, minlength=groups)

    def judged(self, codes: np.ndarray, groups: int) -> np.ndarray:
        """Return the groups with enough points for a test."""
        return np.asarray(self.counts(codes, groups) >= FEWEST)


def check_codes(curves: list[PointCurve], codes: np.ndarray, groups: int) -> None:
    """Refuse codes that do not fit the points, and curves that do not share their points."""
    if not curves:
        raise ValueError("There should be at least one curve. Found none.")
    for curve in curves:
        if curve.values.shape[-1] != len(codes):
            raise ValueError(
                f"Every point should have a group. Found {len(codes)} groups for {curve.values.shape[-1]} points of "
                f"{curve.name!r}."
            )
    if len(codes) and not (codes.min() >= 0 and codes.max() < groups):
        raise ValueError(f"Codes of groups should lie from 0 to {groups - 1}. Found {codes.min()} to {codes.max()}.")
    if len({curve.name for curve in curves}) < len(curves):
        raise ValueError(f"Curves should have different names. Found {', '.join(curve.name for curve in curves)}.")


def pairs(groups: int) -> np.ndarray:
    """Every group minus every later one.

    >>> pairs(3).astype(int).tolist()
    [[1, -1, 0], [1, 0, -1], [0, 1, -1]]
    """
    if groups < 2:
        raise ValueError(f"There should be two groups to compare. Found {groups}.")
    rows = np.zeros((groups * (groups - 1) // 2, groups))
    for row, (a, b) in zip(rows, combinations(range(groups), 2), strict=True):
        row[a], row[b] = 1.0, -1.0
    return rows


#: Curves that are means of what is kept for each point.
JUDGED = ("loss", "error", "positive_rate", "tpr", "fpr")


@dataclass(frozen=True, eq=False)
class KeptPoints:
    """The points behind the curves of a run: the group of every point, and one number per point and evaluation.

    With several seeds the values of a curve have shape (seeds, evaluations, points).
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

    def at(self, chosen: np.ndarray) -> KeptPoints:
        """The same points at some of the evaluations."""
        if chosen.all():
            return self
        curves = tuple(replace(curve, values=curve.values[..., chosen, :]) for curve in self.curves)
        return replace(self, curves=curves, times=self.times[chosen])

    def counts(self, curve: str) -> dict[Hashable, int]:
        """How many points of each group count in a curve; nothing where it was not kept."""
        curves = self.named([curve])
        counts = curves[0].counts(self.codes, len(self.groups)).tolist() if curves else []
        return dict(zip(self.groups, counts, strict=False))

    def named(self, names: Iterable[str]) -> tuple[PointCurve, ...]:
        """The curves of these names, in the order asked for."""
        by_name = {curve.name: curve for curve in self.curves}
        return tuple(by_name[name] for name in names if name in by_name)


def kept_points(trajectory: Trajectory) -> KeptPoints | None:
    """Return what a run kept of its points; None if it kept nothing.

    `trajectory.points` may hold `loss` (numbers) and either `decided_positive` or, for several classes, `wrong` (truth
    values), each with dimensions time and point and the group of every point as a coordinate; `positive` says which
    points have the positive label. Evaluations from the first loss that is not finite are left out; so are seeds
    without any evaluation before it."""
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


def diverged_at(trajectory: Trajectory) -> float | None:
    """Return when the run diverged, or None; with several seeds, only if all of them diverged."""
    if trajectory.diverged is None:
        return None
    times = np.atleast_1d(np.asarray(trajectory.diverged.values, dtype=float))
    return float(times.min()) if np.isfinite(times).all() else None


def held_out_facts(trajectory: Trajectory) -> Mapping[str, Any]:
    """Return what the origin of a measured run says about the held-out points; empty if nothing is known."""
    return described_held_out(trajectory) if trajectory.origin.measured else {}


def described_held_out(trajectory: Trajectory) -> Mapping[str, Any]:
    """Return what the origin of a run or forecast says about the held-out points; empty if nothing is known."""
    problem: Any = trajectory.origin.problem
    facts = problem.get("held_out") if isinstance(problem, Mapping) else None
    return facts if isinstance(facts, Mapping) else {}


def few_held_out(trajectory: Trajectory) -> set[Hashable]:
    """The groups with fewer held-out points than are tested, as far as the origin of a run or forecast says."""
    sizes = described_held_out(trajectory).get("sizes")
    few: set[Hashable] = set()
    for pair in sizes if isinstance(sizes, list) else ():
        # What stands in a file may be anything.
        if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], (int, float)) and pair[1] < FEWEST:
            with suppress(ValueError, TypeError, KeyError):
                few.add(label_from_json(pair[0]))
    return few
