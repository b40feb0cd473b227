"""Limits of differences of rates, from Clopper-Pearson limits of each group."""

from __future__ import annotations

import numpy as np


def clopper_pearson(hits: np.ndarray, counts: np.ndarray, tail: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return exact confidence limits of a share, each wrong with probability at most `tail` (Clopper-Pearson, 1934).

    >>> low, high = clopper_pearson(np.array([0, 5]), np.array([10, 10]), 0.025)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.187], [0.308, 0.813])
    """
    from scipy.special import betaincinv

    hits, counts, tail = np.broadcast_arrays(*(np.asarray(one, dtype=float) for one in (hits, counts, tail)))
    low, high = np.zeros(hits.shape), np.ones(hits.shape)
    some, not_all = hits > 0, hits < counts
    low[some] = betaincinv(hits[some], counts[some] - hits[some] + 1.0, tail[some])
    high[not_all] = betaincinv(hits[not_all] + 1.0, counts[not_all] - hits[not_all], 1.0 - tail[not_all])
    return low, high


def recovered(
    rates: np.ndarray, low: np.ndarray, high: np.ndarray, contrasts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return limits of contrasts (contrasts, looks) from those of the groups (groups, looks).

    >>> rates, low, high = np.array([[0.5], [0.2]]), np.array([[0.4], [0.1]]), np.array([[0.6], [0.3]])
    >>> [limit.round(3).tolist() for limit in recovered(rates, low, high, np.array([[1.0, -1.0]]))]
    [[[0.159]], [[0.441]]]

    The distance of each limit from its rate is used as a standard error, separately for each side (MOVER; Zou and
    Donner, 2008).
    """
    middle = contrasts @ rates
    up, down = np.maximum(contrasts, 0.0) ** 2, np.minimum(contrasts, 0.0) ** 2
    below, above = (rates - low) ** 2, (high - rates) ** 2
    return middle - np.sqrt(up @ below + down @ above), middle + np.sqrt(up @ above + down @ below)
