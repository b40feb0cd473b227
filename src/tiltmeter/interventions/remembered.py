"""What is remembered of group losses from step to step."""

from __future__ import annotations

import numpy as np


def remembered(before: np.ndarray, sums: np.ndarray, counts: np.ndarray, points: float) -> np.ndarray:
    """Remembered losses moved towards the mean of `counts` new ones, by counts / (counts + points).

    >>> remembered(np.array([np.nan, 1.0, 1.0]), np.array([4.0, 4.0, 0.0]), np.array([2.0, 2.0, 0.0]), 2.0)
    array([2. , 1.5, 1. ])

    Groups without a new point keep their average; the first value of a group is taken as it is.
    """
    if np.minimum.reduce(counts, axis=None) > 0.0 and not np.isnan(np.add.reduce(before, axis=None)):  # as a rule
        return np.asarray(before + counts / (counts + points) * (sums / counts - before))
    new = counts > 0.0
    mean = sums / np.where(new, counts, 1.0)
    first = np.isnan(before)
    moved = before + counts / np.where(new, counts + points, 1.0) * (mean - before)
    return np.asarray(np.where(new, np.where(first, mean, moved), before))
