"""PlainSGD: gradient descent as in torch.optim.SGD, for which the linearised network has a closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class PlainSGD:
    """Plain or heavy-ball descent for `steps` updates; `lr` is a number, or the rate of every step.

    It is made by `recipe.plain_sgd`, from values that the recipe has checked.
    """

    lr: float | np.ndarray
    steps: int
    momentum: float = 0.0
    weight_decay: float = 0.0

    @property
    def plain(self) -> bool:
        """Whether a closed form for all steps is known."""
        return isinstance(self.lr, float) and not self.momentum and not self.weight_decay

    def rates(self) -> np.ndarray:
        """The learning rate of every update, the first at step 0."""
        if isinstance(self.lr, float):
            return np.full(self.steps, float(self.lr))
        return self.lr

    def travelled(self, evaluations: np.ndarray) -> np.ndarray:
        """Return the time of the gradient flow at these steps: the sum of the rates so far, over 1 - momentum.

        >>> PlainSGD(0.1, 100, momentum=0.5).travelled(np.array([0, 10])).tolist()
        [0.0, 2.0]
        """
        # A constant rate is not expanded into an array: a forecast may have any number of steps.
        fixed = isinstance(self.lr, float)
        so_far = self.lr * evaluations if fixed else np.concatenate([[0.0], np.cumsum(self.rates())])[evaluations]
        return np.asarray(so_far / (1.0 - self.momentum))

    def fastest(self) -> float:
        """The largest learning rate."""
        return float(self.rates().max()) if not isinstance(self.lr, float) else float(self.lr)
