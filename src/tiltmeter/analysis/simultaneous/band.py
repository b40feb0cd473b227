"""Band: a difference between groups at every look with limits that hold at all looks together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Band:
    """Gaps and their limits, each of shape (looks, contrasts); NaN where there is no test.

    >>> band = Band(np.array([[0.5], [0.1]]), np.array([[0.2], [-0.2]]), np.array([[0.8], [0.4]]))
    >>> band.shown.ravel().tolist(), band.bound.tolist(), band.within(0.5).ravel().tolist()
    ([1, 0], [0.8], [False, True])
    """

    gap: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @property
    def shown(self) -> np.ndarray:
        """The sign of the difference where it is shown, else 0."""
        return (self.lower > 0).astype(np.int8) - (self.upper < 0).astype(np.int8)

    @property
    def bound(self) -> np.ndarray:
        """For each contrast, an upper limit of its size at all looks."""
        return np.asarray(np.maximum(np.abs(self.lower), np.abs(self.upper)).max(0))

    def within(self, distance: float) -> np.ndarray:
        """Return where the difference is shown to be below `distance`: equivalence, without additional error rate.

        `distance` should be fixed before looking at the data; the limits are two one-sided tests (Schuirmann, 1987).
        """
        if not distance > 0:
            raise ValueError(f"`distance` should be positive. Found distance = {distance}.")
        return np.asarray((self.lower > -distance) & (self.upper < distance))

    def gated(self, passed: np.ndarray) -> Band:
        """Return the same band, widened to include zero wherever the gate did not pass."""
        lower = np.where(passed, self.lower, np.minimum(self.lower, 0.0))
        upper = np.where(passed, self.upper, np.maximum(self.upper, 0.0))
        return Band(self.gap, lower, upper)
