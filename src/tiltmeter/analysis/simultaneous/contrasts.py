"""Contrasts: the differences between groups that are tested, as rows of weights."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def pairs(groups: int) -> np.ndarray:
    """Every group minus every later one.

    >>> pairs(3).astype(int).tolist()
    [[1, -1, 0], [1, 0, -1], [0, 1, -1]]
    """
    if groups < 2:
        raise ValueError(f"There should be two groups to compare. Found {groups}.")
    rows = np.zeros((groups * (groups - 1) // 2, groups))
    for row, (a, b) in zip(rows, combinations(range(groups), 2), strict=True):
        row[a], row[b] = 1.0, -1.0
    return rows


def against_all(shares: np.ndarray) -> np.ndarray:
    """Return every group minus the mean of all, weighted by the shares of the points (0: left out of the mean).

    >>> against_all(np.array([0.5, 0.5])).tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    """
    weights = np.asarray(shares, dtype=float)
    if weights.ndim != 1 or (weights < 0).any() or (weights > 0).sum() < 2:
        raise ValueError(f"`shares` should be positive for at least two groups. Found shares = {weights.tolist()}.")
    return np.asarray(np.eye(len(weights)) - weights / weights.sum())
