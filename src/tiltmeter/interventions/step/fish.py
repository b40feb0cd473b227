"""Fish: small steps for one group after the other, so that their gradients agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.interventions.kinds import StepIntervention
from tiltmeter.interventions.shared.shares import checked_per_group


@dataclass(frozen=True)
class Fish(StepIntervention):
    """The step of the optimiser with (w - v) / (inner G), where v has taken a step for each group: Shi et al. (2022).

    >>> Fish(inner=0.01).needs
    'training groups'

    From w, one plain step of size `inner` is taken for the points of every group in the batch, in random order; v is
    where they end. On average over the order this is a step on the sum of the groups' mean losses minus inner / 2 times
    the inner products of their gradients: directions on which groups agree count more. As `inner` -> 0 it is balancing
    within the batch.

    Agreeing gradients are no promise of equal losses. An intervention of groups beside it is refused: Fish has every
    group count alike.

    Args:
        inner: Size of the step for the points of one group.
        seed: Seed of the order of the groups.
    """

    needs = "training groups"
    by_group = True
    cannot = "weigh groups: every group in the batch takes one inner step"

    inner: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        checked_per_group(self.inner, "inner", 0.0, strict=True)

    def optimizer(self, made: Any) -> Any:
        return _OneAfterTheOther(made, self.inner, self.seed)


class _OneAfterTheOther:
    """Steps `made` with the difference that one inner step for each group makes."""

    def __init__(self, made: Any, inner: float, seed: int) -> None:
        self._made, self._inner, self._seed, self._done = made, inner, seed, 0

    def step(self, closure: Callable[[int], Any], groups: Sequence[int]) -> None:
        import torch

        order = np.random.default_rng((self._seed, self._done)).permutation(np.asarray(groups))
        self._done += 1
        # A network that stands in for a wider one moves further or less, see `shared.uphill`.
        every = [(p, group.get("gradient_step", 1.0)) for group in self._made.param_groups for p in group["params"]]
        kept = [p.detach().clone() for p, _ in every]
        for group in order:
            closure(int(group))
            with torch.no_grad():
                for p, factor in every:
                    if p.grad is not None:
                        p.sub_(p.grad, alpha=self._inner * factor)
        with torch.no_grad():
            for (p, factor), before in zip(every, kept, strict=True):
                if p.grad is not None:
                    p.grad.copy_((before - p) / (self._inner * len(order) * factor))
                p.copy_(before)
        self._made.step()

    def state_dict(self) -> dict[str, int]:
        return {"done": self._done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self._done = int(state["done"])
