"""PointLaw: changes the loss of a point."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from tiltmeter.interventions.intervention import Intervention, Needs


@dataclass(frozen=True)
class PointLaw(Intervention, ABC):
    """Another loss for every point of a batch, from its loss, its score and its label; it needs no group labels.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Doubled(PointLaw):
    ...     def each(self, losses, scores, y):
    ...         return 2.0 * losses
    >>> Doubled().each(0.5, 0.0, 1.0)
    1.0
    """

    needs: ClassVar[Needs] = "no groups"
    changes = "the loss of points"
    #: Whether it reads a loss as minus the logarithm of a probability, so that the loss must be one.
    log_loss: ClassVar[bool] = False
    #: Whether a point's new loss depends on that point alone, and not on the others of its batch.
    pointwise: ClassVar[bool] = True

    @property
    def routes(self) -> tuple[str, ...]:
        return "train", "ensemble"

    @abstractmethod
    def each(self, losses: Any, scores: Any, y: Any) -> Any:
        """Losses (B,) in place of `losses` (B,), as torch tensors; the mean over the batch is then taken."""
