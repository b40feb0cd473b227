"""impact_ratio: the smallest positive rate of any group divided by the largest (disparate impact)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from tiltmeter.fairness.estimate import UNKNOWN, Estimate, from_draws
from tiltmeter.fairness.last_evaluation import LastEvaluation

#: Groups below this share of the points are not rated, as in the rules of New York's Local Law 144; where all groups
#: are that small, all are rated.
SMALL = 0.02
#: With fewer positive decisions than this in the group of the largest rate, the ratio is not informative.
FEWEST = 10


@dataclass(frozen=True)
class ImpactRatio:
    """Smallest positive rate divided by the largest (disparate impact), with the groups that make it.

    `in_data` is the same ratio of base rates of the two groups: what a model that is always right would have. `unrated`
    groups are too small. The four-fifths rule ignores the number of points; it is a rule of thumb, not a test.
    """

    ratio: Estimate
    lowest: Hashable
    highest: Hashable
    in_data: float
    unrated: tuple[Hashable, ...]


def impact_ratio(evaluation: LastEvaluation, level: float = 0.05) -> ImpactRatio:
    """Return the impact ratio at the last evaluation.

    >>> yes = np.arange(200) % 100 < np.repeat([20, 40], 100)
    >>> found = impact_ratio(LastEvaluation(("a", "b"), np.repeat([0, 1], 100), np.arange(200) % 2 == 0, yes[None],
    ...                      np.ones((1, 200)), 10.0))
    >>> found.ratio.value, found.lowest, found.highest, found.in_data
    (0.5, 'a', 'b', 1.0)
    >>> round(found.ratio.low, 1), round(found.ratio.high, 1)
    (0.3, 0.8)

    The limits are for these two groups, by bootstrap over points. If they were chosen as the extremes of many groups,
    the ratio is smaller than it would be on new points.
    """
    rates, sizes = evaluation.rates(), evaluation.counts.sum(1)
    large = sizes >= SMALL * sizes.sum()
    large |= not large.any()
    said = np.where(large, rates.positive_rate, np.nan)
    unrated = tuple(group for group, rated in zip(evaluation.groups, large, strict=True) if not rated)
    low, high = int(np.nanargmin(said)), int(np.nanargmax(said))
    base = rates.base_rate
    in_data = float(base[low] / base[high]) if base[high] > 0 else float("nan")
    ratio = UNKNOWN
    if low != high and said[high] * sizes[high] >= FEWEST:
        drawn = evaluation.redrawn.positive_rate
        with np.errstate(all="ignore"):
            ratio = from_draws(float(said[low] / said[high]), drawn[:, low] / drawn[:, high], level)
    return ImpactRatio(ratio, evaluation.groups[low], evaluation.groups[high], in_data, unrated)
