"""Band: a difference between groups at every look with limits that hold at all looks together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Band:
    """Gaps and their limits, each of shape (looks, contrasts); NaN where nothing is judged.

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
        """For each contrast, what its size is shown never to exceed at any look."""
        return np.asarray(np.maximum(np.abs(self.lower), np.abs(self.upper)).max(0))

    def within(self, distance: float) -> np.ndarray:
        """Where the difference is shown to be smaller than `distance`: equivalence, at no further error.

        `distance` should be fixed before looking; the same limits serve as two one-sided tests (Schuirmann, 1987).
        """
        if not distance > 0:
            raise ValueError(f"`distance` should be positive. Found distance = {distance}.")
        return np.asarray((self.lower > -distance) & (self.upper < distance))

    def gated(self, passed: np.ndarray) -> Band:
        """The same band, widened to include no difference wherever the gate did not pass."""
        lower = np.where(passed, self.lower, np.minimum(self.lower, 0.0))
        upper = np.where(passed, self.upper, np.maximum(self.upper, 0.0))
        return Band(self.gap, lower, upper)
