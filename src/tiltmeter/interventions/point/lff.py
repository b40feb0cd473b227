"""LfF: points that a biased network beside the model finds hard count more."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from tiltmeter.interventions.kinds import Shown, TermIntervention
from tiltmeter.interventions.point.generalised_cross_entropy import GeneralisedCrossEntropy
from tiltmeter.interventions.shared.log_losses import log_losses, one_number_a_point


@dataclass(frozen=True)
class LfF(TermIntervention):
    """A point counts by its relative difficulty L_b / (L_b + L), learning from failure, Nam et al. (2020).

    >>> LfF(q=0.7).cost(groups=4)
    2.0

    L is the loss of the model and L_b that of a second network, a copy of the untrained model. The second one is
    trained on the same batches with `GeneralisedCrossEntropy(q)`, so that it follows what is easy, which is taken for
    the bias. In a loop of one's own the optimiser gets its parameters too: `[*model.parameters(),
    *steer.parameters()]`.

    A point counts about half where both networks agree, so that training is slower than plain training at the same
    learning rate. The moving averages of the published code are left out. It fails where the bias is so easy that both
    networks learn it at once.

    Args:
        q: Exponent of the loss of the second network, see `GeneralisedCrossEntropy`.
    """

    sees = frozenset({"inputs"})
    log_loss = True
    cannot = "tell the bias from whatever else is easy to learn"

    q: float = 0.7

    def __post_init__(self) -> None:
        GeneralisedCrossEntropy(self.q)  # checks q

    def cost(self, groups: int) -> float:  # noqa: ARG002
        return 2.0

    def module(self, model: Any, data: Any) -> Any:  # noqa: ARG002
        return copy.deepcopy(model)

    def term(self, shown: Shown) -> tuple[Any, Any]:
        biased = one_number_a_point(shown.own(shown.x), len(shown.losses), "LfF")
        easy = log_losses(biased, shown.y, shown.labels)
        both = easy.detach() + shown.losses.detach()
        difficulty = easy.detach() / both.clamp(min=1e-12)
        return difficulty * shown.losses, GeneralisedCrossEntropy(self.q).each(easy, biased, shown.y).mean()
