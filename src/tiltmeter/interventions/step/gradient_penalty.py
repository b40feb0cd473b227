"""GradientPenalty: a penalty on the length of the gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tiltmeter.interventions.kinds import StepIntervention
from tiltmeter.interventions.shared.shares import checked_per_group
from tiltmeter.interventions.shared.uphill import move_uphill


@dataclass(frozen=True)
class GradientPenalty(StepIntervention):
    """loss + strength `|gradient|`, by a finite difference along the gradient: Zhao, Zhang and Hu (2022).

    >>> GradientPenalty(strength=0.01, distance=0.05).cost(groups=2)
    2.0

    The step is taken with (1 - s) g(w) + s g(w + distance g / `|g|`) and s = strength / distance. With s = 1 it is
    `SAM`.

    Like SAM it knows nothing of groups.

    Args:
        strength: How much the term counts beside the loss; 0 is plain training.
        distance: Distance along the gradient at which the second one is taken.
    """

    cannot = "know groups: it flattens the loss of all points together"

    strength: float = 0.01
    distance: float = 0.05

    def __post_init__(self) -> None:
        checked_per_group(self.strength, "strength", 0.0)
        checked_per_group(self.distance, "distance", 0.0, strict=True)

    def cost(self, groups: int) -> float:  # noqa: ARG002
        return 2.0

    def optimizer(self, made: Any) -> Any:
        return _Penalised(made, self.strength / self.distance, self.distance)


class _Penalised:
    """Steps `made` with a mean of the gradients here and nearby; it has no state of its own."""

    def __init__(self, made: Any, share: float, distance: float) -> None:
        self._made, self._share, self._distance = made, share, distance

    def step(self, closure: Callable[[], Any]) -> Any:
        import torch

        value = closure()
        kept = move_uphill(self._made, self._distance)
        here = [p.grad.detach().clone() for p, _ in kept]
        closure()
        with torch.no_grad():
            for (p, before), gradient in zip(kept, here, strict=True):
                p.copy_(before)
                p.grad.mul_(self._share).add_(gradient, alpha=1.0 - self._share)
        self._made.step()
        return value
