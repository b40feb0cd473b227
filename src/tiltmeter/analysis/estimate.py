"""Estimate: a number with its confidence limits."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np


class Estimate(NamedTuple):
    """A value and its limits; NaN if not known.

    >>> Estimate(0.2, 0.1, 0.3).shown, Estimate(0.2, -0.1, 0.5).shown
    (True, False)
    """

    value: float
    low: float
    high: float

    @property
    def shown(self) -> bool:
        """Whether the limits exclude zero."""
        return self.low > 0 or self.high < 0

    @property
    def known(self) -> bool:
        return math.isfinite(self.value) and math.isfinite(self.low) and math.isfinite(self.high)

    def times(self, factor: float) -> Estimate:
        """Return the same in another unit; a negative factor swaps the limits."""
        ends = sorted((self.low * factor, self.high * factor))
        return Estimate(self.value * factor, ends[0], ends[1])


#: An estimate that is not known.
UNKNOWN = Estimate(math.nan, math.nan, math.nan)


def from_draws(value: float, drawn: np.ndarray, level: float = 0.05) -> Estimate:
    """Return a value with bootstrap quantiles as limits; unknown if a tenth of the copies has no value.

    >>> found = from_draws(0.5, np.linspace(0.0, 1.0, 1001))
    >>> round(found.low, 3), round(found.high, 3)
    (0.025, 0.975)
    """
    finite = drawn[np.isfinite(drawn)]
    if not math.isfinite(value) or len(finite) < 0.9 * len(drawn):
        return Estimate(value, math.nan, math.nan)
    low, high = np.quantile(finite, [level / 2, 1 - level / 2])
    return Estimate(float(value), min(float(low), float(value)), max(float(high), float(value)))


def wilson(share: float, points: float, level: float = 0.05) -> Estimate:
    """Return a share of this many points with the limits of Wilson (1927); no limits without points.

    >>> found = wilson(0.0, 10)
    >>> found.value, found.low, round(found.high, 3)
    (0.0, 0.0, 0.278)
    """
    from scipy.special import ndtri

    if not points > 0:
        return Estimate(share, float("nan"), float("nan"))
    z2 = float(ndtri(level / 2.0)) ** 2
    middle = (share + z2 / (2.0 * points)) / (1.0 + z2 / points)
    half = (z2 * share * (1.0 - share) / points + z2**2 / (4.0 * points**2)) ** 0.5 / (1.0 + z2 / points)
    return Estimate(share, max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share)))
