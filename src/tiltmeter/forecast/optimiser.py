"""Optimiser: the updates whose course is forecast, checked, with the learning rate of every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import numpy as np

from tiltmeter.record.labelled import JSON
from tiltmeter.schedule import schedule_to_json


@dataclass(frozen=True)
class Optimiser:
    """Plain or heavy-ball gradient descent as torch.optim.SGD does it: `lr` a number or a function of the step."""

    lr: float | Callable[[float], float]
    steps: int
    momentum: float = 0.0
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.steps, bool) or not isinstance(self.steps, (int, np.integer)) or self.steps < 1:
            raise ValueError(f"`steps` should be a positive integer. Found steps = {self.steps!r}.")
        if not callable(self.lr):
            _positive("lr", self.lr)
        if not _number(self.momentum) or not 0 <= self.momentum < 1:
            raise ValueError(f"`momentum` should lie between 0 and 1, 1 excluded. Found momentum = {self.momentum!r}.")
        if not _number(self.weight_decay) or not 0 <= self.weight_decay < np.inf:
            raise ValueError(f"`weight_decay` should not be negative. Found weight_decay = {self.weight_decay!r}.")

    @property
    def plain(self) -> bool:
        """Whether a closed form for all steps is known."""
        return not callable(self.lr) and not self.momentum and not self.weight_decay

    def rates(self) -> np.ndarray:
        """The learning rate of every update, the first at step 0."""
        if not callable(self.lr):
            return np.full(self.steps, float(self.lr))
        found = np.asarray([float(self.lr(step)) for step in range(self.steps)])
        bad = ~(np.isfinite(found) & (found >= 0))
        if bad.any():
            step = int(np.argmax(bad))
            raise ValueError(f"`lr` should be a number from 0 at every step. Found lr = {found[step]} at step {step}.")
        return found

    def travelled(self, looks: np.ndarray) -> np.ndarray:
        """The time of the gradient flow at these steps: the learning rates so far, summed, with heavy-ball speed-up.

        >>> Optimiser(0.1, 100, momentum=0.5).travelled(np.array([0, 10])).tolist()
        [0.0, 2.0]
        """
        # A constant rate is not written out: forecasts may be of any length.
        so_far = (
            np.concatenate([[0.0], np.cumsum(self.rates())])[looks] if callable(self.lr) else float(self.lr) * looks
        )
        return np.asarray(so_far / (1.0 - self.momentum))

    def fastest(self) -> float:
        """The largest learning rate."""
        return float(self.rates().max()) if callable(self.lr) else float(self.lr)

    def to_json(self) -> dict[str, JSON]:
        lr: JSON = schedule_to_json(self.lr) if callable(self.lr) else float(self.lr)
        return {
            "lr": lr,
            "steps": int(self.steps),
            "momentum": float(self.momentum),
            "weight_decay": float(self.weight_decay),
        }


def _number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _positive(name: str, value: object) -> None:
    if not _number(value) or not 0 < float(value) < np.inf:  # type: ignore[arg-type]
        raise ValueError(f"`{name}` should be a positive number or a function of the step. Found {name} = {value!r}.")
