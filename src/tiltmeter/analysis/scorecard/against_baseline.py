"""Against the baseline: one run's numbers, their paired changes, and who paid."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tiltmeter.analysis.crossings import Crossings
from tiltmeter.analysis.scorecard.group_values import GroupValues
from tiltmeter.analysis.scorecard.per_seed import PerSeed
from tiltmeter.analysis.scorecard.score import Paid, Peak, Score
from tiltmeter.analysis.scorecard.seed_mean import SeedMean


def _change(one: np.ndarray, other: np.ndarray, run: GroupValues, baseline: GroupValues) -> SeedMean:
    """The difference, paired by the seeds that both runs have; without such seeds, from the scatter of each."""
    if run.exact and baseline.exact:
        return SeedMean(float(one[0] - other[0]), 0.0)
    shared = [seed for seed in run.seeds if seed in baseline.seeds]
    if shared:
        mine = one[[run.seeds.index(seed) for seed in shared]]
        theirs = other[[baseline.seeds.index(seed) for seed in shared]]
        return SeedMean.over(mine - theirs)
    a, b = SeedMean.over(one, run.exact), SeedMean.over(other, baseline.exact)
    return SeedMean(a.value - b.value, float(np.hypot(a.error, b.error)))


def score(name: str, one: PerSeed, reference: PerSeed, crossed: Crossings, before: Crossings, cost: float) -> Score:
    """The row of one run: its numbers, and their changes against those of the baseline."""
    run, groups = one.run, one.run.groups

    def estimate(values: np.ndarray) -> SeedMean:
        return SeedMean.over(values, run.exact)

    def change(values: np.ndarray, others: np.ndarray) -> SeedMean:
        return _change(values, others, run, reference.run)

    worst_change = change(one.worst, reference.worst)
    worst_area_change = change(one.worst_area, reference.worst_area)
    gap_area_change = change(one.gap_area, reference.gap_area)
    per_group = [change(one.at_selected[:, g], reference.at_selected[:, g]) for g in range(len(groups))]
    changes, changes_before = (Counter(frozenset(crossing.pair) for crossing in many) for many in (crossed, before))
    return Score(
        name=name,
        worst_group=groups[int(np.argmax(one.at_selected.mean(axis=0)))],
        worst=estimate(one.worst),
        worst_change=worst_change,
        best_ever=estimate(one.best_ever),
        best_ever_time=one.best_ever_time,
        reopened=estimate(run.values[:, -1].max(axis=1) - one.best_ever),
        worst_area=estimate(one.worst_area),
        worst_area_change=worst_area_change,
        gap_area=estimate(one.gap_area),
        gap_area_change=gap_area_change,
        noise_floor=_noise_floor(run),
        peak=_peak(run),
        crossings=len(crossed),
        created=sum((changes - changes_before).values()),
        removed=sum((changes_before - changes).values()),
        loss_clock=tuple(estimate(values) for values in one.reached),
        loss_clock_change=tuple(
            change(values, others) for values, others in zip(one.reached, reference.reached, strict=True)
        ),
        cost=cost,
        paid=tuple(Paid(group, by) for group, by in zip(groups, per_group, strict=True) if by.sign > 0),
        levels_down=gap_area_change.sign < 0 and max(worst_area_change.sign, worst_change.sign) > 0,
        at_selected=tuple(estimate(one.at_selected[:, g]) for g in range(len(groups))),
        areas_by_seed=tuple(zip(one.gap_area.tolist(), one.worst_area.tolist(), strict=True)),
        diverged=not bool(np.isfinite(one.worst_area).all()),
    )


def _peak(run: GroupValues) -> Peak:
    mean = run.values.mean(axis=0)
    gap = np.where(np.isfinite(mean).all(axis=1), np.ptp(mean, axis=1), -np.inf)
    look = int(np.argmax(gap))
    worse, better = int(np.argmax(mean[look])), int(np.argmin(mean[look]))
    return Peak(float(gap[look]), float(run.times[look]), run.groups[worse], run.groups[better])


def _noise_floor(run: GroupValues) -> float:
    """sqrt(2/pi) times the scatter of the gap over seeds, over training; of several pairs the largest."""
    if run.exact:
        return 0.0
    if len(run.seeds) < 2:
        return float("nan")
    gaps = run.values[:, :, :, None] - run.values[:, :, None, :]
    scatter = gaps.std(axis=0, ddof=1).max(axis=(1, 2))
    return float(np.sqrt(2.0 / np.pi) * run.over_training(scatter[None])[0])
