"""Capped shares: the pulls that maximise the inner problem of chi-square DRO and CVaR over groups."""

from __future__ import annotations

import numpy as np


def capped_shares(shares: np.ndarray, losses: np.ndarray, strength: float, cap: float = np.inf) -> np.ndarray:
    """P = p clip(1 + strength (L - level), 0, cap) with the level at which P sums to one; exact, over the last axis.

    >>> capped_shares(np.array([0.5, 0.5]), np.array([1.0, 0.0]), strength=1.0)
    array([0.75, 0.25])
    >>> capped_shares(np.array([0.5, 0.5]), np.array([9.0, 0.0]), strength=1.0, cap=1.5)
    array([0.75, 0.25])

    It maximises sum P L - sum (P - p)^2 / (2 strength p) under 0 <= P <= cap p and sum P = 1.
    """
    mean = (shares * losses).sum(-1, keepdims=True)
    # The sum is piecewise linear and decreasing in the level, with kinks at these levels.
    levels = [losses + 1.0 / strength, mean]
    if np.isfinite(cap):
        levels.append(losses + (1.0 - cap) / strength)
    corners = np.sort(np.concatenate(levels, axis=-1), axis=-1)

    def pulls(level: np.ndarray) -> np.ndarray:
        return np.asarray(shares * np.clip(1.0 + strength * (losses - level), 0.0, cap))

    totals = np.stack([pulls(corners[..., i : i + 1]).sum(-1) for i in range(corners.shape[-1])], axis=-1)
    last = np.clip((totals >= 1.0).sum(-1, keepdims=True) - 1, 0, corners.shape[-1] - 2)
    low, high = (np.take_along_axis(corners, last + i, -1) for i in (0, 1))
    above, below = (np.take_along_axis(totals, last + i, -1) for i in (0, 1))
    fall = np.where(above > below, above - below, 1.0)
    found = pulls(low + np.clip((above - 1.0) / fall, 0.0, 1.0) * (high - low))
    return np.asarray(found / found.sum(-1, keepdims=True))
