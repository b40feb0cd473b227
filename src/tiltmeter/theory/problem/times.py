"""Times at which curves are evaluated, checked where they enter."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Times of `predict` and of the command line where none are given: from the first gradient to the limit of usual rates.
DEFAULT_TIMES = np.geomspace(0.01, 200.0, 400)


def checked_times(times: Any) -> np.ndarray:
    """Times as an increasing array of non-negative floats."""
    try:
        array = np.atleast_1d(np.asarray(times, dtype=float))
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"`times` should be numbers. Found {type(times).__name__}.") from None
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"`times` should be a non-empty list of numbers. Found an array of shape {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError("`times` should be finite. For t -> infinity use `asymptotes`.")
    if array.min() < 0:
        raise ValueError(f"`times` should not be negative. Found {array.min():g}.")
    if (np.diff(array) <= 0).any():
        place = int(np.flatnonzero(np.diff(array) <= 0)[0])
        raise ValueError(f"`times` should increase strictly. Found {array[place + 1]:g} after {array[place]:g}.")
    return np.ascontiguousarray(array)
