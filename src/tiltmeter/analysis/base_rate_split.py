"""base_rate_split: how much of a difference in error or loss is due to base rates, and how much to decisions."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tiltmeter.analysis.estimate import Estimate, from_draws
from tiltmeter.analysis.last_look import LastLook, Rates
from tiltmeter.analysis.pairs import Pair

Splittable = Literal["error", "loss"]


@dataclass(frozen=True)
class BaseRateSplit:
    """A difference, first group minus second, as the sum of two parts.

    `base_rates` is what the groups' different shares of positives make, with each label treated as in the mean of both
    groups; `within_labels` is what remains between points of the same label, at the mean of both base rates. The sum
    is exact (Kitagawa, 1955). It is arithmetic, not a cause: other base rates would have trained another model.
    """

    curve: Splittable
    pair: tuple[Hashable, Hashable]
    gap: Estimate
    base_rates: Estimate
    within_labels: Estimate
    level: float


def base_rate_split(look: LastLook, curve: Splittable, pair: Pair, level: float = 0.05) -> BaseRateSplit:
    """Split the difference in `curve` between two groups at the last look.

    >>> found = LastLook(("a", "b"), np.repeat([0, 1], 100), np.arange(200) % 100 < np.repeat([50, 10], 100),
    ...                  np.zeros((1, 200), dtype=bool), np.ones((1, 200)), 10.0)
    >>> split = base_rate_split(found, "error", ("a", "b"))  # says no to all
    >>> round(split.gap.value, 3), round(split.base_rates.value, 3), split.within_labels.value
    (0.4, 0.4, 0.0)
    """
    if curve not in ("error", "loss"):
        raise ValueError(f'`curve` should be "error" or "loss". Found curve = {curve!r}.')
    places = look.groups.index(pair[0]), look.groups.index(pair[1])
    observed = _parts(look.rates(), curve, places)
    drawn = _parts(look.redrawn, curve, places)
    gap, base, within = (from_draws(float(one), many, level) for one, many in zip(observed, drawn, strict=True))
    return BaseRateSplit(curve, (pair[0], pair[1]), gap, base, within, level)


def _parts(rates: Rates, curve: Splittable, places: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gap, part of the base rates, part within labels."""
    a, b = places
    values = rates.wrong if curve == "error" else rates.losses
    first, second = values[..., a, :], values[..., b, :]
    share = rates.base_rate
    middle = (share[..., a] + share[..., b]) / 2.0
    by_label = (first + second) / 2.0
    base = (share[..., a] - share[..., b]) * (by_label[..., 1] - by_label[..., 0])
    within = (1.0 - middle) * (first - second)[..., 0] + middle * (first - second)[..., 1]
    return base + within, base, within
