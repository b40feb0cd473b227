"""GroupClipping: the gradient of every group is limited in length before they are added."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.interventions.group_intervention import GramIntervention, Seen, gram_of
from tiltmeter.interventions.shared.shares import checked_per_group


@dataclass(frozen=True)
class GroupClipping(GramIntervention):
    """P = p min(1, limit / `|gradient of the group|`): no group's gradient is longer than `limit`.

    >>> law = GroupClipping(limit=1.0)
    >>> seen = Seen(0.0, ("+", "-"), np.array([0.5, 0.5]), np.zeros(2), gram=np.diag([4.0, 0.25]))
    >>> law.pull(np.zeros(2), seen)
    array([0.25, 0.5 ])

    Clipping the whole gradient shortens it where one group is badly off, and so slows that group down. Clipping every
    group on its own keeps the others at their pace.

    A group that is clipped learns more slowly than without: this protects others from it.

    Args:
        limit: Largest length of the gradient of a group.
    """

    cannot = "speed a group up: it only holds back those with long gradients"

    limit: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_per_group(self.limit, "limit", 0.0, strict=True)

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        lengths = np.sqrt(np.maximum(np.diagonal(gram_of(seen), axis1=-2, axis2=-1), np.finfo(float).tiny))
        return np.asarray(seen.shares * np.minimum(1.0, self.limit / lengths))
