"""Group values: one curve of several runs as plain arrays over the stretch of training that all of them have."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, cast

import numpy as np
import xarray as xr

from tiltmeter.interventions.cost_of_interventions import cost_of
from tiltmeter.interventions.stored import intervention_from_json
from tiltmeter.leaders.exact import exact_curve
from tiltmeter.leaders.points import kept_points
from tiltmeter.pairs import ROUNDING, groups_of, leader_sign, resolution
from tiltmeter.record.labelled import array_from_json, label_from_json
from tiltmeter.record.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class GroupValues:
    """One curve of one run: `values` of shape (seed, time, group) at the run's own evaluations.

    `exact` says that they come from theory: there is no scatter, and none is missing. Differences below `resolution`
    are errors of rounding or integration.
    """

    times: np.ndarray
    values: np.ndarray
    seeds: tuple[Hashable, ...]
    groups: tuple[Hashable, ...]
    exact: bool
    resolution: float = ROUNDING

    def until(self, end: float) -> GroupValues:
        """The part up to a time, with the value there interpolated between evaluations if none is."""
        if end >= self.times[-1]:
            return self
        inside = self.times < end
        after = int(inside.sum())
        low, high = self.times[after - 1], self.times[after]
        share = (end - low) / (high - low)
        at_end = (1.0 - share) * self.values[:, after - 1] + share * self.values[:, after]
        return GroupValues(
            np.append(self.times[inside], end),
            np.concatenate([self.values[:, inside], at_end[:, None]], axis=1),
            self.seeds,
            self.groups,
            self.exact,
            self.resolution,
        )

    def over_training(self, per_evaluation: np.ndarray) -> np.ndarray:
        """The mean over time of something with shape (seed, time), linear between evaluations."""
        length = float(self.times[-1] - self.times[0]) or 1.0
        return np.asarray(np.trapezoid(per_evaluation, self.times, axis=1) / length)

    def spacing_error(self, per_evaluation: np.ndarray) -> float:
        """How far this mean is off because evaluations are few: its change if every second evaluation is left out."""
        half = np.unique(np.append(np.arange(0, len(self.times), 2), len(self.times) - 1))
        length = float(self.times[-1] - self.times[0]) or 1.0
        fewer = np.trapezoid(per_evaluation[:, half], self.times[half], axis=1) / length
        return float(np.abs(self.over_training(per_evaluation) - fewer).max())


def group_values(trajectory: Trajectory, curve: str, groups: tuple[Hashable, ...] | None = None) -> GroupValues:
    """One curve of a run, with the groups in the order asked for."""
    values = trajectory[curve]
    found = groups_of(values)
    if leader_sign(curve, values) < 0:
        raise ValueError(f"A scorecard needs a curve for which lower is better. Found {curve!r}.")
    extra = [str(dim) for dim in values.dims if dim not in ("time", "group", "seed")]
    if extra:
        raise ValueError(f"A scorecard is for single runs and their seeds: select one point of {', '.join(extra)}.")
    if not values.sizes["time"]:
        raise ValueError(f"Curve {curve!r} has no evaluations: nothing is recorded yet.")
    if groups is not None and set(groups) != set(found):
        raise ValueError(
            f"Runs of a scorecard should have the same groups. Found {', '.join(map(repr, found))} beside "
            f"{', '.join(map(repr, groups))}."
        )
    order = [found.index(group) for group in groups or found]
    seeds: tuple[Hashable, ...] = tuple(values.coords["seed"].values.tolist()) if "seed" in values.dims else (None,)
    full = values if "seed" in values.dims else values.expand_dims("seed")
    array = full.transpose("seed", "time", "group").values[:, :, order].astype(float)
    exact = "seed" not in values.dims and exact_curve(trajectory, curve) is not None
    times = values.coords["time"].values.astype(float)
    return GroupValues(times, array, seeds, tuple(groups or found), exact, resolution(values))


def every_group_values(runs: Mapping[str, Trajectory], curve: str) -> dict[str, GroupValues]:
    """The curve of every run at its own evaluations, groups in the order of the first run; they must overlap in
    time."""
    clocks = {run.clock for run in runs.values()}
    if len(clocks) > 1:
        raise ValueError(f"Runs of a scorecard should count time alike. Found the clocks {', '.join(sorted(clocks))}.")
    groups: tuple[Hashable, ...] | None = None
    found = {}
    for name, run in runs.items():
        found[name] = group_values(run, curve, groups)
        groups = found[name].groups
    start = max(one.times[0] for one in found.values())
    end = min(one.times[-1] for one in found.values())
    if start > end:
        raise ValueError("Runs of a scorecard should overlap in time. Found runs that do not.")
    return found


def on_common_stretch(runs: Mapping[str, Trajectory], curve: str) -> dict[str, GroupValues]:
    """The curve of every run at its own looks up to the earliest end: for pictures."""
    found = every_group_values(runs, curve)
    end = min(one.times[-1] for one in found.values())
    return {name: one.until(end) for name, one in found.items()}


def common_evaluations(runs: Mapping[str, Trajectory], curve: str) -> dict[str, GroupValues]:
    """The curve of every run at the same evaluations, groups in the order of the first run.

    Exact curves are evaluated at the evaluations of all runs. Measured ones are compared at the evaluations that all of
    them have."""
    found = every_group_values(runs, curve)
    own = [one.times for one in found.values()]
    if all(np.array_equal(own[0], times) for times in own[1:]):
        return found
    start, end = max(times[0] for times in own), min(times[-1] for times in own)
    measured = [one.times for one in found.values() if not one.exact]
    evaluations = reduce(np.intersect1d, measured) if measured else np.union1d(reduce(np.union1d, own), [start, end])
    evaluations = evaluations[(evaluations >= start) & (evaluations <= end)]
    if len(evaluations) < 2:
        raise ValueError(
            f"Runs of a scorecard should have two evaluations in common, at least. Found {len(evaluations)} between "
            f"{start:.6g} "
            f"and {end:.6g}. Record them at the same times."
        )
    return {name: at_evaluations(runs[name], curve, one.groups, evaluations) for name, one in found.items()}


def at_evaluations(
    trajectory: Trajectory, curve: str, groups: tuple[Hashable, ...], evaluations: np.ndarray
) -> GroupValues:
    """One curve at these evaluations, as it was recorded there or, for an exact curve, evaluated there."""
    return group_values(restricted(trajectory, curve, evaluations), curve, groups)


def restricted(trajectory: Trajectory, curve: str, evaluations: np.ndarray) -> Trajectory:
    """The run with this curve (and its standard error) at these evaluations only."""
    values = trajectory[curve]
    if np.array_equal(values.coords["time"].values, evaluations):
        return trajectory
    exact = exact_curve(trajectory, curve) if "seed" not in values.dims else None
    if exact is not None:
        return trajectory.replace({curve: exact(evaluations)}, trajectory.evaluate)
    names = [name for name in (curve, f"{curve}_se") if name in trajectory]
    return trajectory.replace({name: _at(trajectory[name], evaluations) for name in names})


def _at(values: xr.DataArray, evaluations: np.ndarray) -> xr.DataArray:
    missing = evaluations[~np.isin(evaluations, values.coords["time"].values)]
    if missing.size:
        raise LookupError(f"Curve {values.name!r} has no evaluation at {missing[0]:.6g}.")
    return values.sel(time=evaluations)


def training_shares(
    trajectory: Trajectory, groups: Sequence[Hashable], given: Mapping[Any, float] | None = None
) -> tuple[np.ndarray, bool]:
    """The share of each group among the training points, and whether it is known; equal shares if it is not.

    >>> import tiltmeter as tm
    >>> run = tm.predict(tm.teacher_mixture(rho=0.75), tm.SGD(lr=0.2), [0.0, 1.0])
    >>> training_shares(run, ["+", "-"])
    (array([0.75, 0.25]), True)
    """
    known = dict(given) if given is not None else _recorded(trajectory)
    if known is None:
        return np.full(len(groups), 1.0 / len(groups)), False
    missing = [group for group in groups if group not in known]
    unknown = [group for group in known if group not in groups] if given is not None else []
    if unknown:
        raise ValueError(f"`shares` names the unknown group {unknown[0]!r}. There are: {', '.join(map(repr, groups))}.")
    if missing:
        raise ValueError(f"`shares` should name every group. Missing: {', '.join(map(repr, missing))}.")
    values = np.array([float(known[group]) for group in groups])
    if not (np.isfinite(values).all() and (values >= 0).all() and values.sum() > 0):
        raise ValueError(f"`shares` should be non-negative numbers that do not all vanish. Found {known!r}.")
    return values / values.sum(), True


def _recorded(trajectory: Trajectory) -> dict[Any, float] | None:
    train = trajectory.origin.settings.get("train")
    if isinstance(train, dict) and "sizes" in train:
        sizes: Any = train["sizes"]
        return {label_from_json(label): float(size) for label, size in sizes}
    problem = trajectory.origin.problem
    if isinstance(problem, dict) and "mixture" in problem:
        weight, groups = array_from_json(cast(Any, problem["weight"])), cast(Any, problem["groups"])
        if weight.dims == ("group",):
            return dict(zip(map(label_from_json, groups), weight.values.tolist(), strict=True))
    return None


def gradient_evaluations(trajectory: Trajectory, end: float, groups: int) -> float:
    """Gradients of single points that the run took up to a time, interventions included; NaN if it does not tell.

    Theory counts in units of the dimension, as its time does.
    """
    settings: Mapping[str, Any] = trajectory.origin.settings
    described: Any = trajectory.origin.recipe or settings.get("sgd")
    if not isinstance(described, dict) or not isinstance(described.get("batch"), int):
        return float("nan")
    try:
        laws = [intervention_from_json(law) for law in described.get("interventions") or ()]
    except ValueError:  # an intervention of one's own: its cost is not in the file
        return float("nan")
    return float(end * described["batch"] * cost_of(tuple(laws), groups, max(1, round(end))))


def clock_levels(baseline: GroupValues, shares: np.ndarray, levels: Sequence[float]) -> list[float]:
    """The mean losses at which the baseline has completed these parts of its fall, from first evaluation to lowest."""
    mean = np.nanmean(baseline.values @ shares, axis=0)
    first, lowest = float(mean[0]), float(np.nanmin(mean))
    return [first - level * (first - lowest) for level in levels]


def worst_when_reached(run: GroupValues, shares: np.ndarray, level: float) -> np.ndarray:
    """The worst group of every seed where the mean first reaches `level`, linear between evaluations; NaN if it never
    does.

    >>> times = np.array([0.0, 10.0])
    >>> run = GroupValues(times, np.array([[[0.5, 0.5], [0.1, 0.3]]]), (None,), ("a", "b"), True)
    >>> worst_when_reached(run, np.array([0.5, 0.5]), 0.35)
    array([0.4])
    """
    mean = run.values @ shares
    found = np.full(len(mean), np.nan)
    for seed, row in enumerate(mean):
        reached = np.flatnonzero(row <= level)
        if not reached.size:
            continue
        after = int(reached[0])
        if after == 0:
            found[seed] = run.values[seed, 0].max()
            continue
        share = (row[after - 1] - level) / (row[after - 1] - row[after])
        between = (1.0 - share) * run.values[seed, after - 1] + share * run.values[seed, after]
        found[seed] = between.max()
    return found


@dataclass(frozen=True, eq=False)
class PointValues:
    """The curve of one run point by point: `values` (seed, evaluation, point) at the evaluations of its
    `GroupValues`."""

    values: np.ndarray
    codes: np.ndarray

    def influence(self, weights: np.ndarray, seeds: list[int]) -> np.ndarray:
        """What every point contributes to a weighted sum of group means, as a mean over seeds.

        `weights` has shape (seed, evaluation, group). The sum of the squares is the variance of that sum over other
        points."""
        found = np.zeros(len(self.codes))
        for group in range(weights.shape[2]):
            own = np.flatnonzero(self.codes == group)
            if len(own) < 2:
                continue
            values = self.values[seeds][:, :, own].astype(np.float64)
            away = values - values.mean(2, keepdims=True)
            share = np.einsum("sl,sln->n", weights[seeds, :, group], away) / len(seeds)
            found[own] = share / np.sqrt(len(own) * (len(own) - 1.0))
        return found


def point_values(trajectory: Trajectory, run: GroupValues, curve: str) -> PointValues | None:
    """The points of a run at its evaluations; None where they were not kept, or not at every evaluation."""
    kept = None if run.exact else kept_points(trajectory)
    found = () if kept is None else kept.named([curve])
    if kept is None or not found or found[0].where is not None or kept.seeds != len(run.seeds):
        return None
    if set(kept.groups) != set(run.groups) or not np.isin(run.times, kept.times).all():
        return None
    evaluations = np.searchsorted(kept.times, run.times)
    values = found[0].values if found[0].values.ndim == 3 else found[0].values[None]
    order = np.array([run.groups.index(group) for group in kept.groups])
    return PointValues(values[:, evaluations], order[kept.codes])


def point_error(
    one: PointValues | None,
    weights: np.ndarray,
    seeds: list[int],
    other: PointValues | None = None,
    others: np.ndarray | None = None,
    other_seeds: list[int] | None = None,
) -> float:
    """Standard error of a weighted sum of group means, or of its difference from another run; 0 if not known.

    >>> values = PointValues(np.array([[[1.0, 3.0, 5.0, 5.0]]]), np.array([0, 0, 1, 1]))
    >>> round(point_error(values, np.array([[[1.0, 0.0]]]), [0]), 6)  # the mean of 1 and 3
    1.0
    >>> point_error(values, np.array([[[1.0, 0.0]]]), [0], values, np.array([[[1.0, 0.0]]]), [0])  # the same run
    0.0

    Two runs that looked at the same points share their error, so only what differs counts.
    """
    if one is None:
        return 0.0
    mine = one.influence(weights, seeds)
    if other is None or others is None or other_seeds is None:
        return float(np.sqrt((mine**2).sum()))
    theirs = other.influence(others, other_seeds)
    if np.array_equal(one.codes, other.codes):
        return float(np.sqrt(((mine - theirs) ** 2).sum()))
    return float(np.sqrt((mine**2).sum() + (theirs**2).sum()))


def selected_weights(run: GroupValues, evaluations: np.ndarray, group: int | None = None) -> np.ndarray:
    """Weights of one group at the selected evaluation of every seed; of the worst group there if None."""
    weights = np.zeros(run.values.shape)
    for seed, evaluation in enumerate(evaluations):
        chosen = int(np.argmax(run.values[seed, evaluation])) if group is None else group
        weights[seed, evaluation, chosen] = 1.0
    return weights


def area_weights(run: GroupValues, gap: bool = False) -> np.ndarray:
    """Weights of the worst group over training, with `gap` minus those of the best."""
    steps = np.diff(run.times) / (float(run.times[-1] - run.times[0]) or 1.0)
    over_time = (np.append(steps, 0.0) + np.append(0.0, steps)) / 2.0
    worst, best = np.argmax(run.values, axis=2), np.argmin(run.values, axis=2)
    groups = np.arange(run.values.shape[2])
    weights = (worst[..., None] == groups).astype(float)
    if gap:
        weights -= best[..., None] == groups
    return np.asarray(weights * over_time[None, :, None])


@dataclass(frozen=True, eq=False)
class PerSeed:
    """One number per seed of everything that is compared; `evaluations` are the selected ones, `points` what was
    kept."""

    run: GroupValues
    evaluations: np.ndarray
    points: PointValues | None
    at_selected: np.ndarray
    worst: np.ndarray
    best_ever: np.ndarray
    best_ever_time: float
    worst_area: np.ndarray
    gap_area: np.ndarray
    reached: list[np.ndarray]

    @classmethod
    def of(
        cls,
        run: GroupValues,
        evaluations: np.ndarray,
        shares: np.ndarray,
        marks: Sequence[float],
        points: PointValues | None = None,
    ) -> PerSeed:
        worst = run.values.max(axis=2)
        at_selected = run.values[np.arange(len(evaluations)), evaluations]
        ever = np.where(np.isfinite(worst), worst, np.inf)
        middle = ever.mean(axis=0)
        return cls(
            run=run,
            evaluations=evaluations,
            points=points,
            at_selected=at_selected,
            worst=at_selected.max(axis=1),
            best_ever=ever.min(axis=1),
            best_ever_time=float(run.times[int(np.argmin(middle))]),
            worst_area=run.over_training(worst),
            gap_area=run.over_training(np.ptp(run.values, axis=2)),
            reached=[worst_when_reached(run, shares, mark) for mark in marks],
        )
