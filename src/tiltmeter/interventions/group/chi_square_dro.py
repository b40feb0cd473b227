"""ChiSquareDRO: the worst mixture of groups within a chi-square distance of their shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.interventions.group_intervention import GroupIntervention, Seen
from tiltmeter.interventions.shared.shares import capped_shares, checked_per_group


@dataclass(frozen=True)
class ChiSquareDRO(GroupIntervention):
    """P = p (1 + strength (L - level))_+: maximises sum P L minus a chi-square penalty of weight 1 / (2 strength).

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> sgd = tm.SGD(lr=0.2, interventions=(ChiSquareDRO(20.0, by="draws"),))
    >>> tm.predict(problem, sgd, [0.0, 60.0])["loss"].values[-1].round(3)
    array([0.262, 0.292])

    This is the penalised form of DRO with the chi-square divergence (Levy et al., 2020), over groups instead of points.
    The pull is linear in the loss where that of `Tilted` is exponential, so a group that is far behind gets a smaller
    pull.

    Like every intervention without a state, it leaves a gap.

    Args:
        strength: How fast the pull grows with the loss; 0 is plain training.
    """

    smooth = False
    cannot = "close a gap entirely: what steers it is the gap itself"

    strength: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_per_group(self.strength, "strength", 0.0, strict=True)

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        return capped_shares(seen.shares, seen.losses, self.strength)
