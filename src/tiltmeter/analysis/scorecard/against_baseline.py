"""Against the baseline: one run's numbers, their paired changes, and who paid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from tiltmeter.analysis.crossings import Crossings
from tiltmeter.analysis.scorecard.group_values import GroupValues
from tiltmeter.analysis.scorecard.per_seed import PerSeed
from tiltmeter.analysis.scorecard.point_errors import area_weights, point_error, selected_weights
from tiltmeter.analysis.scorecard.score import Paid, Peak, Score
from tiltmeter.analysis.scorecard.seed_mean import SeedMean
from tiltmeter.names import NOBODY


def _shared(run: GroupValues, baseline: GroupValues) -> tuple[list[int], list[int]]:
    """The places of the seeds that both runs have; of all seeds if they share none."""
    shared = [seed for seed in run.seeds if seed in baseline.seeds]
    if not shared:
        return list(range(len(run.seeds))), list(range(len(baseline.seeds)))
    return [run.seeds.index(seed) for seed in shared], [baseline.seeds.index(seed) for seed in shared]


def _change(one: np.ndarray, other: np.ndarray, run: GroupValues, baseline: GroupValues) -> SeedMean:
    """The difference, paired by the seeds that both runs have; without such seeds, from the scatter of each."""
    if run.exact and baseline.exact:
        return SeedMean(float(one[0] - other[0]), 0.0, run.resolution + baseline.resolution)
    mine, theirs = _shared(run, baseline)
    if set(run.seeds) & set(baseline.seeds):
        return SeedMean.over(one[mine] - other[theirs])
    a, b = SeedMean.over(one, run.exact), SeedMean.over(other, baseline.exact)
    return SeedMean(a.value - b.value, float(np.hypot(a.error, b.error)))


def _with_points(found: SeedMean, error: float) -> SeedMean:
    """The mean with the error of the points added in squares; of one seed it is the only one known."""
    if not error > 0:
        return found
    return SeedMean(found.value, float(np.hypot(found.error, error)) if np.isfinite(found.error) else error)


def _known_to(found: SeedMean, run: GroupValues, per_look: np.ndarray) -> SeedMean:
    """A mean over training of exact curves: where looks are few, it is known less exactly."""
    return replace(found, resolution=found.resolution + run.spacing_error(per_look))


def score(name: str, one: PerSeed, reference: PerSeed, crossed: Crossings, before: Crossings, cost: float) -> Score:
    """The row of one run: its numbers, and their changes against those of the baseline."""
    run, groups = one.run, one.run.groups
    mine, theirs = _shared(run, reference.run)

    def estimate(values: np.ndarray, weights: np.ndarray | None = None) -> SeedMean:
        found = SeedMean.over(values, run.exact)
        if weights is None:
            return found
        return _with_points(found, point_error(one.points, weights, list(range(len(run.seeds)))))

    def change(values: np.ndarray, others: np.ndarray, weights: np.ndarray, base: np.ndarray) -> SeedMean:
        found = _change(values, others, run, reference.run)
        if one.points is None or reference.points is None:
            return found
        return _with_points(found, point_error(one.points, weights, mine, reference.points, base, theirs))

    def of_group(group: int | None) -> tuple[np.ndarray, np.ndarray]:
        return selected_weights(run, one.looks, group), selected_weights(reference.run, reference.looks, group)

    worst_change = change(one.worst, reference.worst, *of_group(None))
    areas = [[area_weights(which.run, gap) for which in (one, reference)] for gap in (False, True)]
    worst_area_change = change(one.worst_area, reference.worst_area, *areas[0])
    gap_area_change = change(one.gap_area, reference.gap_area, *areas[1])
    if run.exact and reference.run.exact:
        worst_area_change = _known_to(worst_area_change, run, run.values.max(2) - reference.run.values.max(2))
        gap_area_change = _known_to(gap_area_change, run, np.ptp(run.values, 2) - np.ptp(reference.run.values, 2))
    per_group = [change(one.at_selected[:, g], reference.at_selected[:, g], *of_group(g)) for g in range(len(groups))]
    possible = _could_be_worst(one, crossed)
    changes, changes_before = (Counter(frozenset(crossing.pair) for crossing in many) for many in (crossed, before))
    return Score(
        name=name,
        worst_group=possible[0] if len(possible) == 1 else NOBODY,
        could_be_worst=possible,
        worst=estimate(one.worst, of_group(None)[0]),
        worst_change=worst_change,
        best_ever=estimate(one.best_ever),
        best_ever_time=one.best_ever_time,
        reopened=estimate(run.values[:, -1].max(axis=1) - one.best_ever),
        worst_area=estimate(one.worst_area, areas[0][0]),
        worst_area_change=worst_area_change,
        gap_area=estimate(one.gap_area, areas[1][0]),
        gap_area_change=gap_area_change,
        noise_floor=_noise_floor(run),
        peak=_peak(run),
        crossings=len(crossed),
        created=sum((changes - changes_before).values()),
        removed=sum((changes_before - changes).values()),
        loss_clock=tuple(estimate(values) for values in one.reached),
        loss_clock_change=tuple(
            _change(values, others, run, reference.run)
            for values, others in zip(one.reached, reference.reached, strict=True)
        ),
        cost=cost,
        paid=tuple(Paid(group, by) for group, by in zip(groups, per_group, strict=True) if by.sign > 0),
        levels_down=gap_area_change.sign < 0 and max(worst_area_change.sign, worst_change.sign) > 0,
        at_selected=tuple(estimate(one.at_selected[:, g], of_group(g)[0]) for g in range(len(groups))),
        areas_by_seed=tuple(zip(one.gap_area.tolist(), one.worst_area.tolist(), strict=True)),
        diverged=not bool(np.isfinite(one.worst_area).all()),
    )


def _could_be_worst(one: PerSeed, crossed: Crossings) -> tuple[Hashable, ...]:
    """The groups that may be the worst at the selected look: one if it is shown, or where values are exact.

    All groups where seeds were judged at different looks, or nothing was judged.
    """
    groups, judged = one.run.groups, crossed.standing
    if one.run.exact or judged is None:
        return (groups[int(np.argmax(one.at_selected.mean(axis=0)))],)
    times = {float(one.run.times[look]) for look in one.looks}
    if not judged.differences or len(times) > 1:
        return tuple(groups)
    first = judged.differences[0]
    return judged.could_be_worst(first.curve, int(np.abs(first.times - times.pop()).argmin()))


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
