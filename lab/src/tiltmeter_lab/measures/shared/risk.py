"""Risk: one number per point, how positive the model considers it; for two labels."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from tiltmeter.measures.seen_model import SeenModel
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.modules.tangent.gradient import Losses


def point_losses(seen: SeenModel, y: Tensor | None = None) -> Losses:
    """Losses of the points at given indices, on the model's device and in its precision; `y` replaces their labels."""
    labels = seen.y if y is None else y

    def losses(places: Tensor) -> Tensor:
        return seen.losses(seen.pass_once(seen.x[places]), labels[places])

    return losses


def positives(snapshot: Snapshot) -> np.ndarray:
    """Which points are positive; raises an error unless there are two labels."""
    if not snapshot.task.binary:
        count = len(snapshot.task.labels)
        raise ValueError(f"This measure needs two labels. Found {count or 'a regression, with no'} labels.")
    return np.asarray(snapshot.data.y == snapshot.task.positive)


def positive_score(snapshot: Snapshot) -> np.ndarray:
    """A score that is larger for points that are more likely positive: the output, or the difference of two outputs."""
    positives(snapshot)
    if snapshot.score is None:
        raise TypeError("This measure needs the scores themselves, which were not kept.")
    score = snapshot.score.reshape(len(snapshot.data), -1)
    return score[:, 0] if score.shape[1] == 1 else score[:, 1] - score[:, 0]


def risk(snapshot: Snapshot) -> np.ndarray:
    """The probability that the model gives to the positive label; raises an error if the loss defines none."""
    score, task = positive_score(snapshot), snapshot.task
    if task.link in ("sigmoid", "softmax"):
        return np.asarray(0.5 + 0.5 * np.tanh(score / 2.0))
    if task.link == "probability":
        return np.asarray(np.clip(score, 0.0, 1.0))
    if task.link == "linear" and task.outputs == 1:
        low, high = task.labels
        return np.asarray(np.clip((score - low) / (high - low), 0.0, 1.0))
    raise ValueError(
        f"This measure needs probabilities, which a model trained with {snapshot.definition} does not give."
    )
