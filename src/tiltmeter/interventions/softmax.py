"""softmax over the last axis, without overflow."""

from __future__ import annotations

import numpy as np


def softmax(values: np.ndarray) -> np.ndarray:
    """exp(values) that sums to one over the last axis.

    >>> softmax(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    raised = np.exp(values - values.max(-1, keepdims=True))
    return np.asarray(raised / raised.sum(-1, keepdims=True))
