"""Clustered: standard errors of statistics over runs that share their tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

#: Draws of tasks with replacement.
DRAWS = 2000


def clustered(
    values: Sequence[Any], tasks: Sequence[Any], statistic: Callable[[np.ndarray], Any] = np.nanmedian
) -> tuple[float, float | None]:
    """Return a statistic of all values and its standard error by a bootstrap of whole tasks.

    >>> found, error = clustered([1.0, 1.0, 2.0, 2.0, 3.0, 3.0], [0, 0, 1, 1, 2, 2], np.mean)
    >>> found, round(error, 1)
    (2.0, 0.5)

    Runs of one task resemble one another, so that the error does not fall with the number of seeds alone. Rows of a
    two-dimensional `values` stay together. The error is None for fewer than three tasks.
    """
    given = np.asarray(values, dtype=float)
    if not len(given):
        return float("nan"), None
    members = [np.flatnonzero(np.asarray(tasks) == task) for task in dict.fromkeys(tasks)]
    if len(members) < 3:
        return float(statistic(given)), None
    rng = np.random.default_rng([0, 17])
    with np.errstate(all="ignore"):
        drawn = [
            statistic(given[np.concatenate([members[i] for i in rng.integers(len(members), size=len(members))])])
            for _ in range(DRAWS)
        ]
    return float(statistic(given)), float(np.nanstd(drawn))


def clustered_share(hits: Sequence[bool], tasks: Sequence[Any]) -> tuple[float, int]:
    """A share of hits and of how many independent trials it is worth, for an interval that stays within 0 and 1.

    >>> clustered_share([True] * 6, [0, 0, 1, 1, 2, 2])
    (1.0, 3)

    Trials of one task resemble one another. Where all of them agree nothing is known about how much, and every task
    counts once.
    """
    share, error = clustered(hits, tasks, np.mean)
    if not error:
        return share, len(set(tasks))
    return share, max(1, min(len(hits), round(share * (1.0 - share) / error**2)))
