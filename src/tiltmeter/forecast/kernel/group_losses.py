"""Group losses: the mean loss of every group, and its standard error, from outputs alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter.losses import CrossEntropy, Loss


def group_losses(
    outputs: np.ndarray, goal: np.ndarray, data: GroupedData, loss: Loss | CrossEntropy
) -> tuple[np.ndarray, np.ndarray]:
    """Mean loss and standard error of every group at every step, (steps, groups), from (steps, points, outputs).

    >>> from tiltmeter.losses import Square
    >>> data = GroupedData(np.zeros((60, 1)), np.ones(60), [0, 1] * 30)
    >>> group_losses(np.zeros((1, 60, 1)), np.ones((60, 1)), data, Square())[0].round(12).tolist()
    [[0.5, 0.5]]
    """
    values = point_losses(outputs, goal, loss)
    mass = np.ones(len(data)) if data.weights is None else data.weights
    member = np.zeros((len(data), len(data.groups)))
    member[np.arange(len(data)), data.codes] = mass
    total = member.sum(0)
    with np.errstate(all="ignore"):
        mean = values @ (member / total)
        spread = (values - mean[:, data.codes]) ** 2 @ (member**2)
        points = np.maximum(1, (member > 0).sum(0))
        error = np.sqrt(spread * points / (points - 1)) / total
    return mean, error


def point_losses(outputs: np.ndarray, goal: np.ndarray, loss: Any) -> np.ndarray:
    """Return the loss of every point, (..., points), from (..., points, outputs)."""
    with np.errstate(all="ignore"):
        if isinstance(loss, CrossEntropy):
            top = outputs.max(-1)
            return np.asarray(top + np.log(np.exp(outputs - top[..., None]).sum(-1)) - (outputs * goal).sum(-1))
        return np.asarray(loss.value(outputs, goal).sum(-1))
