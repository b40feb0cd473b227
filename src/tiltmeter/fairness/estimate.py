"""Estimate: a number with its confidence limits."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tiltmeter.leaders.bands import MANY
from tiltmeter.leaders.points import kept_points
from tiltmeter.record.trajectory import Trajectory

#: Random deals.
DEALS = 999


def shuffled_groups(trajectory: Trajectory, curve: str, share: float = 0.95) -> float | None:
    """What this share of random deals of two groups stays below at the last evaluation; None where it cannot be asked.

    >>> import xarray as xr
    >>> from tiltmeter.record import Origin
    >>> coords = {"time": [9], "group": ("point", np.repeat(["a", "b"], 200))}
    >>> losses = np.random.default_rng(0).normal(size=(1, 400))
    >>> kept = xr.DataArray(losses, dims=("time", "point"), coords=coords)
    >>> found = shuffled_groups(Trajectory({}, "step", Origin("training"), points={"loss": kept}), "loss")
    >>> bool(abs(found - 1.96 * 0.1) < 0.02)  # two standard errors of a difference
    True

    Points keep their loss or decision; for a true-positive rate groups are dealt among the positives. Several seeds are
    averaged point by point. It is a control of one number, not a verdict over all evaluations: see `standing`.
    """
    kept = kept_points(trajectory)
    chosen = () if kept is None else kept.named([curve])
    if kept is None or not chosen or len(kept.groups) != 2:
        return None
    one = chosen[0].averaged if chosen[0].values.ndim == 3 else chosen[0]
    counted = np.full(len(kept.codes), True) if one.where is None else one.where
    values, first = one.values[-1, counted].astype(float), kept.codes[counted] == 0
    size, total = int(first.sum()), len(values)
    if not 0 < size < total:
        return None
    rng = np.random.default_rng(13)
    whole = values.sum()
    sums: np.ndarray
    if total >= MANY and one.rate and one.values.dtype == bool:
        sums = rng.hypergeometric(int(whole), total - int(whole), size, DEALS)  # exactly what shuffling gives
    elif total >= MANY:
        # The sum of a random part of so many points is normal; its variance is exact.
        spread = np.sqrt(size * (total - size) / (total - 1) * values.var())
        sums = rng.normal(size * values.mean(), spread, DEALS)
    else:
        sums = np.array([rng.permutation(values)[:size].sum() for _ in range(DEALS)])
    gaps = sums / size - (whole - sums) / (total - size)
    return float(np.quantile(np.abs(gaps), share))


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
