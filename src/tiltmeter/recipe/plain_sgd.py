"""PlainSGD: gradient descent as torch.optim.SGD does it, of which the linearised network has a closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class PlainSGD:
    """Plain or heavy-ball descent for `steps` updates; `lr` is a number, or the rate of every step.

    A `Recipe` makes it (`recipe.plain_sgd`) and has checked everything in it.
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

    def travelled(self, looks: np.ndarray) -> np.ndarray:
        """The time of the gradient flow at these steps: the learning rates so far, summed, with heavy-ball speed-up.

        >>> PlainSGD(0.1, 100, momentum=0.5).travelled(np.array([0, 10])).tolist()
        [0.0, 2.0]
        """
        # A constant rate is not written out: forecasts may be of any length.
        fixed = isinstance(self.lr, float)
        so_far = self.lr * looks if fixed else np.concatenate([[0.0], np.cumsum(self.rates())])[looks]
        return np.asarray(so_far / (1.0 - self.momentum))

    def fastest(self) -> float:
        """The largest learning rate."""
        return float(self.rates().max()) if not isinstance(self.lr, float) else float(self.lr)
