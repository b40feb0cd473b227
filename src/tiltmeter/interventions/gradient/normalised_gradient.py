"""NormalisedGradient: the gradient of every group is scaled to the same length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.interventions.group_intervention import GramIntervention, Seen, gram_of
from tiltmeter.interventions.shared.shares import checked_per_group


@dataclass(frozen=True)
class NormalisedGradient(GramIntervention):
    """P = scale over the length of the group's gradient in this batch, Francazi et al. (2023).

    >>> law = NormalisedGradient()
    >>> seen = Seen(0.0, ("+", "-"), np.array([0.5, 0.5]), np.zeros(2), gram=np.diag([4.0, 0.25]))
    >>> law.pull(np.zeros(2), seen)
    array([0.5, 2. ])

    With full batches the losses of two groups fall together. With small batches it does not balance them: the length of
    a gradient is mostly noise, so a group with n points in the batch counts like sqrt(n / loss), and the group that is
    already good counts more. Balance the batches as well, and let the learning rate decay, because the steps do not
    shrink by themselves.

    Args:
        scale: Length that every group's gradient gets.
    """

    cannot = "balance unequal batches: a group counts like the root of its points"

    scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_per_group(self.scale, "scale", 0.0, strict=True)

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        squares = np.diagonal(gram_of(seen), axis1=-2, axis2=-1)
        return np.asarray(self.scale / np.sqrt(np.maximum(squares, np.finfo(float).tiny)))
