"""Paired changes: how much better the delivered model serves its worst group with each intervention than without.

All trainings answer the same held-out points, so their differences are paired. The means of every group are drawn again
from a normal distribution with their covariance over trainings, and a difference is clear if it exceeds the 95 %
quantile of the largest of all standardised differences: one error rate for all interventions that were tried.

Where the order of batches is not given, the delivered model is that of another order. Trainings that fluctuate from
evaluation to evaluation will then end elsewhere, so their fluctuation at the end is part of the error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tiltmeter.leaders.points import kept_points
from tiltmeter.names import better_of
from tiltmeter.record.trajectory import Trajectory

#: How often means are drawn again, and how often a clear difference may be named among interventions that do nothing.
DRAWS, LEVEL = 2000, 0.05
#: Evaluations at the end that tell how much a training fluctuates.
LAST = 6


@dataclass(frozen=True)
class PairedChange:
    """The change of the worst group's value at the last evaluation against plain training, with its limits.

    Negative is better, whichever way the curve is better. The limits hold for all interventions together. `alike` says
    that all points together are clearly better off too, and that the worst group does not clearly gain more than they
    do: such an intervention makes a better model, but does nothing about the difference between groups.
    """

    value: float
    low: float
    high: float
    alike: bool = False

    @property
    def better(self) -> bool:
        """Whether the worst group is clearly better off."""
        return bool(self.high < 0.0)


def worst_at_end(run: Trajectory, curve: str) -> float:
    """The worst group's value at the last evaluation, so that lower is better; infinity where the run diverged.

    Of a rate that is better high, this is what is missing: minus the lowest.
    """
    if run.diverged is not None and not bool(run.diverged.isnull().all()):
        return float("inf")
    values = run[curve].isel(time=-1)
    values = values.mean("seed") if "seed" in values.dims else values
    return float(np.nanmax(_signed(run, curve) * values.values))


def paired_changes(
    runs: Mapping[str, Trajectory], baseline: str, curve: str, order_known: bool
) -> dict[str, PairedChange]:
    """The change of every run against the baseline, by the points that all of them answered; empty if none were kept.

    Runs that diverged are left out. `order_known` says that the delivered model is the one judged here.
    """
    sound = {name: run for name, run in runs.items() if np.isfinite(worst_at_end(run, curve))}
    if baseline not in sound:
        return {}
    values, codes, groups = {}, np.empty(0), 0
    for name, run in sound.items():
        kept = kept_points(run)
        chosen = () if kept is None else kept.named([curve])
        if kept is None or not chosen:
            return {}
        one = chosen[0].averaged if chosen[0].values.ndim == 3 else chosen[0]
        inside = np.full(len(kept.codes), True) if one.where is None else one.where
        values[name] = _signed(run, curve) * np.asarray(one.values[-1], dtype=float)[inside]
        codes, groups = kept.codes[inside], len(kept.groups)
    if len({len(one) for one in values.values()}) > 1:
        return {}
    table = np.stack(list(values.values()), axis=1)
    names = list(values)
    place = names.index(baseline)
    rng = np.random.default_rng(0)
    means, drawn, sizes = [], [], []
    for code in range(groups):
        members = table[codes == code]
        if len(members):
            sizes.append(len(members))
            means.append(members.mean(0))
            covariance = np.cov(members, rowvar=False, bias=True).reshape(len(names), -1) / len(members)
            drawn.append(rng.multivariate_normal(means[-1], covariance, size=DRAWS, method="eigh"))
    worst, worst_again = np.max(means, axis=0), np.max(drawn, axis=0)
    all_points, all_again = np.average(means, axis=0, weights=sizes), np.average(drawn, axis=0, weights=sizes)
    series = [_signed(run, curve) * _by_group(run, curve) for run in sound.values()]
    present = np.bincount(codes, minlength=groups) > 0
    worsts = np.stack([one[-LAST:, present].max(1) for one in series])
    averages = np.stack([one[-LAST:, present] @ np.asarray(sizes) / sum(sizes) for one in series])

    def noise(values: np.ndarray) -> np.ndarray:
        return np.zeros(len(names)) if order_known else _fluctuation(values - values[place], place)

    change, low, high = _limits(worst, worst_again, place, noise(worsts))
    _, _, of_all = _limits(all_points, all_again, place, noise(averages))
    _, _, beyond_all = _limits(worst - all_points, worst_again - all_again, place, noise(worsts - averages))
    alike = (of_all < 0.0) & (beyond_all >= 0.0)
    return {
        name: PairedChange(float(change[number]), float(low[number]), float(high[number]), bool(alike[number]))
        for number, name in enumerate(names)
        if number != place
    }


def _by_group(run: Trajectory, curve: str) -> np.ndarray:
    """A curve as (evaluations, groups), averaged over seeds."""
    values = run[curve].mean("seed") if "seed" in run[curve].dims else run[curve]
    return np.asarray(values.transpose("time", "group").values, dtype=float)


def _fluctuation(changes: np.ndarray, place: int) -> np.ndarray:
    """How much each change (runs, evaluations) fluctuates around a line; no less than in half of the other runs."""
    if changes.shape[1] < 3:
        return np.zeros(len(changes))
    bends = np.diff(changes, 2, axis=1)
    # The variance of a second difference is six times that of its terms.
    fluctuation: np.ndarray = np.sqrt((bends**2).mean(1) / 6.0)
    return fluctuation.clip(min=float(np.median(np.delete(fluctuation, place))))


def _limits(
    values: np.ndarray, again: np.ndarray, place: int, noise: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The change of every value against the one at a place, and limits that hold for all of them together."""
    change, redrawn = values - values[place], again - again[:, [place]]
    spread = redrawn.std(0)
    spread[spread < 1e-6 * again.std(0).max()] = 0.0  # an intervention that changes nothing differs by rounding only
    others = spread > 0
    if not others.any():
        return change, np.zeros_like(change), np.zeros_like(change)
    standard = np.abs(redrawn[:, others] - change[others]) / spread[others]
    half = float(np.quantile(standard.max(1), 1.0 - LEVEL)) * np.hypot(spread, noise)
    return change, np.where(others, change - half, 0.0), np.where(others, change + half, 0.0)


def _signed(run: Trajectory, curve: str) -> float:
    return -1.0 if better_of(curve, run[curve]) == "higher" else 1.0
