"""Running averages of group losses from step to step."""

from __future__ import annotations

from math import isnan

from numba import njit


@njit(cache=True, error_model="numpy")
def remember(memory, sums, counts, points):  # type: ignore[no-untyped-def]
    """Move the averages of losses towards the mean of `counts` new ones by counts / (counts + points); reset the sums.

    >>> import numpy as np
    >>> known = np.array([[np.nan, 1.0, 1.0]])
    >>> remember(known, np.array([[4.0, 4.0, 0.0]]), np.array([[2.0, 2.0, 0.0]]), 2.0)
    >>> known
    array([[2. , 1.5, 1. ]])

    All arrays are (seeds, groups) and are changed in place. Groups without a new point keep their average; the first
    value of a group is taken as it is.
    """
    for i in range(memory.shape[0]):
        for g in range(memory.shape[1]):
            if counts[i, g] > 0.0:
                mean = sums[i, g] / counts[i, g]
                if isnan(memory[i, g]):
                    memory[i, g] = mean
                else:
                    memory[i, g] += counts[i, g] / (counts[i, g] + points) * (mean - memory[i, g])
            sums[i, g] = 0.0
            counts[i, g] = 0.0
