"""The loss clock: the worst group when training has got equally far, whatever the number of steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tiltmeter.analysis.scorecard.group_values import GroupValues


def clock_levels(baseline: GroupValues, shares: np.ndarray, levels: Sequence[float]) -> list[float]:
    """The mean losses at which the baseline has completed these parts of its fall, from first look to lowest."""
    mean = np.nanmean(baseline.values @ shares, axis=0)
    first, lowest = float(mean[0]), float(np.nanmin(mean))
    return [first - level * (first - lowest) for level in levels]


def worst_when_reached(run: GroupValues, shares: np.ndarray, level: float) -> np.ndarray:
    """The worst group of every seed where the mean first reaches `level`, linear between looks; NaN if it never does.

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
