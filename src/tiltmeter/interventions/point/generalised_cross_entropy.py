"""GeneralisedCrossEntropy: points that the model finds hard count less."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tiltmeter.interventions.kinds import PointIntervention


@dataclass(frozen=True)
class GeneralisedCrossEntropy(PointIntervention):
    """(1 - p^q) / q in place of -log p, with p the probability of a point's own label, Zhang and Sabuncu (2018).

    >>> import torch
    >>> GeneralisedCrossEntropy(0.7).each(-torch.log(torch.tensor([0.9, 0.2])), None, None)
    tensor([0.1016, 0.9655])

    q -> 0 is the usual loss, q = 1 the mean absolute error. Its gradient is p^q times the usual one, so that training
    follows what is easy. That makes it robust to wrong labels, and it *amplifies* a bias: it is what the biased network
    of LfF is trained with.

    A smaller value is not a better fit: the scale of the loss is another one.

    Args:
        q: Between 0, the usual loss, and 1, the mean absolute error.
    """

    cannot = "help a group whose points are hard: it counts them less"
    log_loss = True

    q: float = 0.7

    def __post_init__(self) -> None:
        if isinstance(self.q, bool) or not 0.0 < self.q <= 1.0:
            raise ValueError(f"`q` should lie above 0 and be at most 1. Found q = {self.q!r}.")

    def each(self, losses: Any, scores: Any, y: Any) -> Any:  # noqa: ARG002
        return -(-self.q * losses).expm1() / self.q
