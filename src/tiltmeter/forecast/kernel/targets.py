"""Targets: the labels in the form that a network's outputs are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

from tiltmeter.losses import CrossEntropy, Logistic, Loss, Square

#: The loss to use instead of torch's own.
TWINS: dict[type, str] = {
    nn.MSELoss: "Square() with twice the learning rate, since it is half of it",
    nn.BCEWithLogitsLoss: "Logistic()",
    nn.SoftMarginLoss: "Logistic()",
    nn.CrossEntropyLoss: "CrossEntropy()",
}


def known_loss(loss: Any) -> Loss | CrossEntropy:
    """Return the loss, or refuse one whose derivative is not known."""
    if isinstance(loss, type):
        raise TypeError(f"`loss` should be a loss. Found the class {loss.__name__}: call it.")
    if not isinstance(loss, (Loss, CrossEntropy)):
        own = TWINS.get(type(loss))
        raise TypeError(
            f"`loss` of a forecast should be Square(), Logistic(), CrossEntropy() or another tiltmeter loss. "
            f"Found {type(loss).__name__}{f': use {own}' if own else ''}."
        )
    return loss


def fitting_loss(outputs: int, labels: int) -> Loss | CrossEntropy:
    """Return the loss that `train` takes if the recipe gives none."""
    if outputs > 1:
        return CrossEntropy()
    return Logistic() if labels <= 2 else Square()


def checked_loss(loss: Any, outputs: int) -> Loss | CrossEntropy:
    """Return the loss, or refuse one that does not fit this many outputs."""
    found = known_loss(loss)
    if isinstance(found, CrossEntropy) != (outputs > 1) and not isinstance(found, Square):
        count = "several outputs" if outputs > 1 else "one output"
        raise TypeError(f"{type(found).__name__}() does not fit a model with {count}.")
    return found


def targets(y: np.ndarray, outputs: int, loss: Loss | CrossEntropy, positive: float) -> np.ndarray:
    """Return what the loss compares outputs with: numbers, -1/+1, or one row per point.

    >>> targets(np.array([0, 1]), 1, Square(), 1).tolist(), targets(np.array([2, 0]), 3, Square(), 2).tolist()
    ([[0.0], [1.0]], [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    """
    if outputs > 1:
        return np.eye(outputs)[np.asarray(y, dtype=np.int64)]
    values = y.astype(float) if isinstance(loss, Square) else np.where(y == positive, 1.0, -1.0)
    return np.asarray(values[:, None])


def slope(loss: Loss | CrossEntropy, outputs: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the derivative of every point's loss with respect to its outputs, in the shape of the outputs."""
    if isinstance(loss, CrossEntropy):
        shifted = np.exp(outputs - outputs.max(-1, keepdims=True))
        return np.asarray(shifted / shifted.sum(-1, keepdims=True) - target)
    return loss.gradient(outputs, target)


def bend(loss: Loss | CrossEntropy) -> float:
    """Return a bound on the second derivative of the loss with respect to the outputs; 1 for other people's losses."""
    bounds: dict[type, float] = {Logistic: 0.25, CrossEntropy: 0.5}
    return bounds.get(type(loss), 1.0)
