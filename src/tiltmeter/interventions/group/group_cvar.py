"""GroupCVaR: the mean loss of the worst share of the population, group by group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.interventions.group_intervention import GroupIntervention, Seen
from tiltmeter.interventions.shared.shares import capped_shares, checked_per_group


@dataclass(frozen=True)
class GroupCVaR(GroupIntervention):
    """P = p clip(1 + strength (L - level), 0, 1 / alpha): no group counts more than 1 / alpha of its share.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> sgd = tm.SGD(lr=0.2, interventions=(GroupCVaR(0.5, by="draws"),))
    >>> tm.predict(problem, sgd, [0.0, 60.0])["pull"].values[-1].round(2)
    array([0.6, 0.4])

    For a large `strength` these are the pulls of the conditional value at risk: the mean loss over the worst fraction
    `alpha` of the population, taken from the worst groups first. That limit is discontinuous where two losses are
    equal; a finite strength makes it continuous, so that it has equations of motion.

    The pull of a group cannot exceed p / alpha, however large its loss.

    Args:
        alpha: Worst fraction of the population that counts.
        strength: How sharply groups are chosen; infinity is the conditional value at risk itself.
    """

    smooth = False
    cannot = "lift a group beyond 1 / alpha of its share"

    alpha: float = 0.5
    strength: float = 100.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.alpha <= 1.0:
            raise ValueError(f"`alpha` should lie in (0, 1]. Found alpha = {self.alpha}.")
        checked_per_group(self.strength, "strength", 0.0, strict=True)

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        return capped_shares(seen.shares, seen.losses, self.strength, 1.0 / self.alpha)
