"""softmax over the last axis, without overflow."""

from __future__ import annotations

from math import exp, inf

import numpy as np

#: Up to this many numbers Python's own arithmetic is faster than six calls of NumPy.
FEW = 16


def softmax(values: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """exp(values), times `weights`, that sums to one over the last axis.

    >>> softmax(np.array([1000.0, 1000.0])), softmax(np.zeros((1, 2)), np.array([[3.0, 1.0]]))
    (array([0.5, 0.5]), array([[0.75, 0.25]]))
    """
    if values.ndim == 1 and len(values) <= FEW:
        few = values.tolist()
        top = max(few)
        if -inf < top < inf and all(one == one for one in few):
            raw = [exp(one - top) for one in few]
            if weights is not None:
                raw = [one * weight for one, weight in zip(raw, weights.tolist(), strict=True)]
            whole = sum(raw)
            return np.array([one / whole for one in raw])
    # This is called often with few groups: reductions along a short last axis would cost more than all else.
    flat = values.ndim <= 2
    raised = values.T.copy() if flat else np.moveaxis(values, -1, 0).copy()
    raised -= np.maximum.reduce(raised)
    np.exp(raised, out=raised)
    if weights is not None:
        raised *= weights.T if flat else np.moveaxis(weights, -1, 0)
    raised /= np.add.reduce(raised)
    return raised.T if flat else np.moveaxis(raised, 0, -1)
