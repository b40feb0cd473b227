"""Balance: critical values for several statistics with a given probability that any of them is exceeded."""

from __future__ import annotations

import numpy as np


def balanced(columns: np.ndarray, level: float) -> np.ndarray:
    """Return critical values of the columns of (draws, statistics): a share of at most `level` of rows exceeds any.

    >>> rng = np.random.default_rng(0)
    >>> draws = rng.normal(size=(1000, 2)) * [1.0, 10.0]
    >>> limits = balanced(draws, 0.05)
    >>> bool((draws > limits).any(1).mean() <= 0.05), (limits / [1.0, 10.0]).round().tolist()
    (True, [2.0, 2.0])

    Each statistic is replaced by its rank among the draws, so that statistics of different size, such as those of a
    loss and a rate, are exceeded equally often (Beran, 1988). If the first row is the observation and the rows are
    exchangeable, the probability that it exceeds any critical value is at most `level`.
    """
    if not 0 < level < 1:
        raise ValueError(f"`level` should lie strictly between 0 and 1. Found level = {level}.")
    count = len(columns)
    below = np.empty(columns.shape)
    for column, share in zip(columns.T, below.T, strict=True):
        share[:] = np.searchsorted(np.sort(column), column) / count
    limit = np.quantile(below.max(1), 1.0 - level, method="higher")
    return np.asarray(np.where(below <= limit, columns, -np.inf).max(0))
