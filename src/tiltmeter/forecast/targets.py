"""Targets: the labels as a network's outputs should meet them."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

from tiltmeter.losses import CrossEntropy, Logistic, Loss, Square

#: What to say instead of torch's own losses.
TWINS: dict[type, str] = {
    nn.MSELoss: "Square() with twice the learning rate, since it is half of it",
    nn.BCEWithLogitsLoss: "Logistic()",
    nn.SoftMarginLoss: "Logistic()",
    nn.CrossEntropyLoss: "CrossEntropy()",
}


def known_loss(loss: Any) -> Loss | CrossEntropy:
    """The loss, if its slope is known."""
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
    """The loss that `train` takes where the recipe leaves it open."""
    if outputs > 1:
        return CrossEntropy()
    return Logistic() if labels <= 2 else Square()


def checked_loss(loss: Any, outputs: int) -> Loss | CrossEntropy:
    """The loss, if it can be forecast for so many outputs."""
    found = known_loss(loss)
    if isinstance(found, CrossEntropy) != (outputs > 1) and not isinstance(found, Square):
        count = "several outputs" if outputs > 1 else "one output"
        raise TypeError(f"{type(found).__name__}() does not fit a model with {count}.")
    return found


def targets(y: np.ndarray, outputs: int, loss: Loss | CrossEntropy, positive: float) -> np.ndarray:
    """What the gradient of the loss compares outputs with: numbers, -1/+1, or one row per point.

    >>> targets(np.array([0, 1]), 1, Square(), 1).tolist(), targets(np.array([2, 0]), 3, Square(), 2).tolist()
    ([[0.0], [1.0]], [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    """
    if outputs > 1:
        return np.eye(outputs)[np.asarray(y, dtype=np.int64)]
    values = y.astype(float) if isinstance(loss, Square) else np.where(y == positive, 1.0, -1.0)
    return np.asarray(values[:, None])


def slope(loss: Loss | CrossEntropy, outputs: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The derivative of every point's loss with respect to its outputs, in the shape of the outputs."""
    if isinstance(loss, CrossEntropy):
        shifted = np.exp(outputs - outputs.max(-1, keepdims=True))
        return np.asarray(shifted / shifted.sum(-1, keepdims=True) - target)
    return loss.gradient(outputs, target)


def bend(loss: Loss | CrossEntropy) -> float:
    """A bound on the second derivative of the loss with respect to the outputs; 1 for a loss that is not ours."""
    bounds: dict[type, float] = {Logistic: 0.25, CrossEntropy: 0.5}
    return bounds.get(type(loss), 1.0)
