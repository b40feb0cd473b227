"""softmax over the last axis, without overflow."""

from __future__ import annotations

import numpy as np


def softmax(values: np.ndarray) -> np.ndarray:
    """exp(values) that sums to one over the last axis.

    >>> softmax(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    # This is called often with few groups: reductions along a short last axis would cost more than all else.
    raised = values.T.copy() if values.ndim == 2 else np.moveaxis(values, -1, 0).copy()
    raised -= np.maximum.reduce(raised)
    np.exp(raised, out=raised)
    raised /= np.add.reduce(raised)
    return raised.T if values.ndim == 2 else np.moveaxis(raised, 0, -1)
