"""Task: what kind of output the model has, derived from its outputs, the labels and the loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

#: How a score becomes a probability: its position between two labels, the score itself, a sigmoid, a softmax, or none.
Link = Literal["linear", "probability", "sigmoid", "softmax", "none"]


@dataclass(frozen=True)
class Task:
    """Regression (`labels` is empty) or a decision between `labels`; with one output, positive above `threshold`."""

    outputs: int
    labels: tuple[float, ...] = ()
    threshold: float | None = None
    link: Link = "none"

    @cached_property
    def decides(self) -> bool:
        return bool(self.labels)

    @cached_property
    def binary(self) -> bool:
        return len(self.labels) == 2

    @cached_property
    def positive(self) -> float:
        """The larger of two labels."""
        return self.labels[1]


def decided(decide: Callable[[Any], Any], score: np.ndarray, task: Task) -> np.ndarray:
    """The decisions of the user's own rule on these scores, as labels; a rule may also return booleans (positive or
    not).

    >>> decided(lambda score: score > 0.5, np.array([0.2, 0.9]), Task(1, (-1.0, 1.0))).tolist()
    [-1.0, 1.0]
    """
    chosen = np.asarray(decide(score))
    if chosen.shape != (len(score),):
        raise ValueError(f"`decide` should give one decision per point. Found shape {chosen.shape}.")
    if chosen.dtype == bool and task.binary:
        return np.where(chosen, task.positive, task.labels[0])
    return chosen


def task_of(y: np.ndarray, outputs: int, link: Link, decided: bool) -> Task:
    """The task of a model with this number of outputs on these labels; `decided` means that the user gave a decision
    rule.
    """
    found = np.unique(y)
    if outputs > 1:
        if y.dtype.kind == "f" and not (found == np.round(found)).all():
            raise ValueError(
                f"With {outputs} outputs labels should be classes 0 to {outputs - 1}. Found y = "
                f"{found[found != np.round(found)][0]:g}."
            )
        if found[0] < 0 or found[-1] >= outputs:
            bad = found[0] if found[0] < 0 else found[-1]
            raise ValueError(
                f"Labels should lie among the model's {outputs} outputs, 0 to {outputs - 1}. Found y = {bad:g}."
            )
        return Task(outputs, tuple(range(outputs)), None, link)
    if len(found) > 2:
        if link in ("sigmoid", "probability"):
            raise ValueError(
                f"A model with one output and this loss decides between two labels. Found {len(found)} different ones."
            )
        return Task(1)
    low, high = _two(found)
    if link == "none" and not decided:
        raise ValueError(
            "With one output and a loss of your own, say when the decision is positive with decide=, as in "
            "decide=lambda score: score > 0."
        )
    thresholds = {"linear": (low + high) / 2, "probability": 0.5}
    return Task(1, (low, high), thresholds.get(link, 0.0), link)


def _two(found: np.ndarray) -> tuple[float, float]:
    if len(found) == 2:
        return float(found[0]), float(found[1])
    only = float(found[0])
    if only == -1.0:
        return -1.0, 1.0
    if only == 0.0:
        return 0.0, 1.0
    raise ValueError(f"The held-out points should have both labels. Found y = {only:g} only.")
