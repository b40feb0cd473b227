"""softmax over the last axis, without overflow."""

from __future__ import annotations

import numpy as np


def softmax(values: np.ndarray) -> np.ndarray:
    """exp(values) that sums to one over the last axis.

    >>> softmax(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    # Reductions of ufuncs are faster than array methods, and this is called often with few groups.
    raised = np.exp(values - np.maximum.reduce(values, axis=-1, keepdims=True))
    return np.asarray(raised / np.add.reduce(raised, axis=-1, keepdims=True))
