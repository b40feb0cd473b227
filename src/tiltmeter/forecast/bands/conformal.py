"""conformal: the factor with which scales become bands, from the scores of trainings that calibrate them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def conformal_factor(scores: Sequence[Sequence[float]], level: float) -> float:
    """Return the quantile that a new training of a new task exceeds with probability at most `level`.

    >>> conformal_factor([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0], [9.0]], 0.1)
    9.0
    >>> conformal_factor([[1.0], [2.0, 3.0]], 0.1)
    inf

    `scores` holds, for every task, the score of each of its seeds: the largest distance of training and forecast over
    all looks, in scales. This is split conformal prediction for tasks drawn alike (hierarchical: Lee, Barber and
    Willett, 2023): every task counts as one, its seeds share that, and one more task at infinity stands for the new
    one. With fewer than 1 / `level` - 1 tasks nothing can be promised and the factor is infinite.
    """
    if not 0 < level < 1:
        raise ValueError(f"`level` should lie strictly between 0 and 1. Found level = {level}.")
    tasks = [np.asarray(one, dtype=float) for one in scores if len(one)]
    if not tasks:
        return float("inf")
    values = np.nan_to_num(np.concatenate(tasks), nan=np.inf, posinf=np.inf)
    weights = np.concatenate([np.full(len(one), 1.0 / len(one)) for one in tasks]) / (len(tasks) + 1)
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) >= 1.0 - level - 1e-12
    return float(values[order][np.argmax(reached)]) if reached.any() else float("inf")
