"""Balanced: groups count by a power of their share, equally by default."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.interventions.group_intervention import GroupIntervention, Seen


@dataclass(frozen=True)
class Balanced(GroupIntervention):
    """P proportional to p^power: 0 makes groups count equally, 1 leaves them as they are, 0.5 lies between.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> sgd = tm.SGD(lr=0.2, interventions=(Balanced(by="draws"),))
    >>> tm.predict(problem, sgd, [60.0])["loss"].values.round(4)
    array([[0.2888, 0.2522]])

    It is constant during training, so it is the same as setting `weights` (P / p) or `proportions` (P), and the theory
    keeps its closed form. Weights make the noise of a rare group larger than drawing it more often does. Equal pulls do
    not mean equal losses. Once a network fits all its training points, the effect is lost.

    Args:
        power: 0 makes groups count equally, 1 leaves them as they are.
    """

    constant = True
    cannot = "make losses equal: it does not look at them"

    power: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.power, bool) or not np.isfinite(self.power):
            raise ValueError(f"`power` should be a number. Found power = {self.power!r}.")

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        if self.power == 1.0:
            return seen.shares.copy()
        raised = seen.shares**self.power
        return np.asarray(raised / raised.sum(-1, keepdims=True))
