"""AttributionPrior: the score must not depend on inputs that are known to mislead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tiltmeter.interventions.kinds import Shown, TermIntervention
from tiltmeter.interventions.shared.input_mask import check_mask_fits, checked_mask
from tiltmeter.interventions.shared.shares import checked_per_group


@dataclass(frozen=True)
class AttributionPrior(TermIntervention):
    """loss + strength * sum over the mask of (d score / d input)^2: right for the right reasons, Ross et al. (2017).

    >>> AttributionPrior(mask=range(64, 68), strength=10.0).mask
    (64, 65, 66, 67)

    With several scores the derivative is that of the sum of their log-probabilities, as in the paper. For a linear
    model the penalty is a ridge on the weights of the mask. In a loop of one's own the points need gradients and are
    given too: `x.requires_grad_()`, `steer(losses, group, scores=scores, y=y, x=x)`.

    It needs to know where the bias sits. A derivative of zero at the training points says nothing about inputs far from
    them, and a bias that also shows elsewhere in the point is not seen.

    Args:
        mask: Places of the inputs that should not matter, counted in the flattened point.
        strength: How much the term counts beside the loss; 0 is plain training.
    """

    sees = frozenset({"inputs", "input gradients"})
    cannot = "act on a bias that does not sit in inputs of its own"

    mask: tuple[int, ...]
    strength: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "mask", checked_mask(self.mask))
        checked_per_group(self.strength, "strength", 0.0)

    def cost(self, groups: int) -> float:  # noqa: ARG002
        return 3.0  # a gradient with respect to the inputs, and the gradient of that

    def module(self, model: Any, data: Any) -> Any:
        import torch

        like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
        check_mask_fits(self.mask, data.tensor_points(like.dtype)[0], "AttributionPrior")
        return None

    def term(self, shown: Shown) -> tuple[Any, Any]:
        import torch

        check_mask_fits(self.mask, shown.x, "AttributionPrior")
        if not shown.x.requires_grad:
            raise ValueError("AttributionPrior needs derivatives with respect to the points: call x.requires_grad_().")
        shown_scores = shown.scores if shown.scores.ndim == 1 else torch.log_softmax(shown.scores, -1).sum(-1)
        (slopes,) = torch.autograd.grad(shown_scores.sum(), shown.x, create_graph=True)
        punished = slopes.flatten(1)[:, list(self.mask)].square().sum(1)
        return shown.losses + self.strength * punished, 0.0
