"""Balance: one critical value for each of several statistics, so that all together exceed theirs as often as stated."""

from __future__ import annotations

import numpy as np


def balanced(columns: np.ndarray, level: float) -> np.ndarray:
    """Critical values of the columns of (draws, statistics): at most a share `level` of the rows exceeds any of them.

    >>> rng = np.random.default_rng(0)
    >>> draws = rng.normal(size=(1000, 2)) * [1.0, 10.0]
    >>> limits = balanced(draws, 0.05)
    >>> bool((draws > limits).any(1).mean() <= 0.05), (limits / [1.0, 10.0]).round().tolist()
    (True, [2.0, 2.0])

    Each statistic is replaced by the share of draws below it, so that a loss and a rate, whose largest values are of
    different size, are exceeded equally often (Beran, 1988). If the first row is the observation and the others are as
    likely as it, the probability that it exceeds any critical value is at most `level`.
    """
    if not 0 < level < 1:
        raise ValueError(f"`level` should lie strictly between 0 and 1. Found level = {level}.")
    count = len(columns)
    below = np.empty(columns.shape)
    for column, share in zip(columns.T, below.T, strict=True):
        share[:] = np.searchsorted(np.sort(column), column) / count
    limit = np.quantile(below.max(1), 1.0 - level, method="higher")
    return np.asarray(np.where(below <= limit, columns, -np.inf).max(0))
