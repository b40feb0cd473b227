"""Tilted: groups count by the exponential of their loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.interventions.group_intervention import GroupIntervention, Seen
from tiltmeter.interventions.shared.shares import softmax


@dataclass(frozen=True)
class Tilted(GroupIntervention):
    """P proportional to p exp(strength * L): the gradient of log(sum p exp(strength L)) / strength, Li et al. (2021).

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> sgd = tm.SGD(lr=0.2, interventions=(Tilted(3.0),))
    >>> tm.predict(problem, sgd, [0.0, 20.0])["loss"].values[-1].round(3)
    array([0.251, 0.323])

    It is the proportional part of group DRO without the integral part: some gap always remains.

    Args:
        strength: 0 is plain training, infinity trains on the worst group alone; below 0 the best group is favoured.
    """

    cannot = "close a gap entirely: what steers it is the gap itself"

    strength: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.strength, bool) or not np.isfinite(self.strength):
            raise ValueError(f"`strength` should be a number. Found strength = {self.strength!r}.")

    @property
    def gain(self) -> float:
        return abs(float(self.strength))

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        return softmax(self.strength * seen.losses, seen.shares)
