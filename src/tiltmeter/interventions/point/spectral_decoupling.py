"""SpectralDecoupling: a penalty on the size of scores, so that one easy feature does not starve the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tiltmeter.interventions.kinds import PointIntervention
from tiltmeter.interventions.shared.shares import checked_per_group


@dataclass(frozen=True)
class SpectralDecoupling(PointIntervention):
    """loss + (strength / 2) `|score|^2` for every point, Pezeshki et al. (2021).

    >>> import torch
    >>> SpectralDecoupling(0.1).each(torch.zeros(2), torch.tensor([1.0, -2.0]), None)
    tensor([0.0500, 0.2000])

    With the logistic loss a linear model that can fit all its points ends where every margin m solves
    1 / (1 + e^m) = strength m; without the penalty margins grow for ever.

    It also slows training down: compare runs at equal loss, not at equal steps. With `Square` it is plain training with
    another learning rate and smaller labels.

    Args:
        strength: How much the term counts beside the loss; 0 is plain training.
    """

    cannot = "tell a spurious feature from a useful one: it holds back whatever is learned first"

    strength: float = 0.1

    def __post_init__(self) -> None:
        checked_per_group(self.strength, "strength", 0.0)

    def each(self, losses: Any, scores: Any, y: Any) -> Any:  # noqa: ARG002
        square = scores.square() if scores.ndim == losses.ndim else scores.square().sum(-1)
        return losses + 0.5 * self.strength * square
