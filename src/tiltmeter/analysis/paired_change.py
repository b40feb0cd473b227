"""paired_change: how much a difference between two groups changed from one run to another, on the same points."""

from __future__ import annotations

import numpy as np

from tiltmeter.analysis.estimate import UNKNOWN, Estimate, from_draws
from tiltmeter.analysis.last_look import LastLook


def same_points(one: LastLook, other: LastLook) -> bool:
    """Whether two runs looked at points with the same groups and labels in the same order."""
    return (
        one.groups == other.groups
        and np.array_equal(one.codes, other.codes)
        and np.array_equal(one.positive, other.positive)
    )


def paired_change(
    base: LastLook, other: LastLook, rate: str, places: tuple[int, int] | None = None, level: float = 0.05
) -> Estimate:
    """Return the change of a rate of `Rates` ("tpr", "error" ...) from `base` to `other`, at the last look of each.

    >>> codes, positive = np.repeat([0, 1], 100), np.ones(200, dtype=bool)
    >>> yes = np.arange(200) % 100 < np.repeat([20, 60], 100)
    >>> runs = [LastLook(("a", "b"), codes, positive, one[None], np.ones((1, 200)), 9.0) for one in (yes, ~yes)]
    >>> found = paired_change(*runs, "tpr", (0, 1))
    >>> round(found.value, 2), found.shown  # from -0.4 to +0.4
    (0.8, True)

    With `places` it is the change of the difference between two groups, else that of all points together. The same
    points (and from five seeds on the same seeds) are redrawn for both runs, so what they share cancels. Unknown if the
    runs looked at different points.
    """
    if not same_points(base, other):
        return UNKNOWN
    now = _of(other, rate, places, False) - _of(base, rate, places, False)
    drawn = _of(other, rate, places, True) - _of(base, rate, places, True)
    return from_draws(float(now), drawn, level)


def _of(look: LastLook, rate: str, places: tuple[int, int] | None, redrawn: bool) -> np.ndarray:
    rates = look.redrawn if redrawn else look.rates()
    values = getattr(rates, rate)
    if places is not None:
        return np.asarray(values[..., places[0]] - values[..., places[1]])
    sizes = rates.count.sum(-1)
    return np.asarray((values * sizes).sum(-1) / sizes.sum(-1))
