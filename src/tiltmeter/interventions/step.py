"""Step interventions: where the gradient of a step is taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tiltmeter.interventions.kinds import StepIntervention
from tiltmeter.interventions.shared.shares import checked_per_group
from tiltmeter.interventions.shared.uphill import move_uphill


@dataclass(frozen=True)
class SAM(StepIntervention):
    """The step of the optimiser with the gradient at w + rho g / `|g|`, Foret et al. (2021).

    >>> SAM(rho=0.05).cost(groups=2)
    2.0

    It finds flat minima. That is no statement about groups: a flat minimum may favour one as well as a sharp one.

    Args:
        rho: Distance along the gradient at which the step's gradient is taken.
    """

    title = "the gradient is taken where the loss is about the largest nearby"
    cannot = "know groups: it flattens the loss of all points together"

    rho: float = 0.05

    def __post_init__(self) -> None:
        checked_per_group(self.rho, "rho", 0.0)

    def cost(self, groups: int) -> float:  # noqa: ARG002
        return 2.0

    def optimizer(self, made: Any) -> Any:
        return _Sharpness(made, self.rho)


class _Sharpness:
    """Steps `made` with the gradient at a point nearby; it has no state of its own."""

    def __init__(self, made: Any, rho: float) -> None:
        self._made, self._rho = made, rho

    def step(self, closure: Callable[[], Any]) -> Any:
        import torch

        value = closure()
        kept = move_uphill(self._made, self._rho)
        closure()
        with torch.no_grad():
            for p, before in kept:
                p.copy_(before)
        self._made.step()
        return value
