"""PerSeed: what a scorecard compares, one number for each seed of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tiltmeter.leaders.points import kept_points
from tiltmeter.leaders.scorecard.group_values import GroupValues, worst_when_reached
from tiltmeter.record.trajectory import Trajectory


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
