"""Step interventions: where the gradient of a step is taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.interventions.kinds import StepIntervention
from tiltmeter.interventions.shared.shares import checked_per_group
from tiltmeter.interventions.shared.uphill import move_uphill


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
    title = "small steps for one group after the other, so that their gradients agree"
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

    title = "a penalty on the length of the gradient"
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


@dataclass(frozen=True)
class MedianGradient(StepIntervention):
    """A step with the median over groups of every coordinate of their gradients: Yin et al. (2018), with groups as
    workers.

    >>> MedianGradient().needs
    'training groups'

    Of two groups it is the mean, which is balancing within the batch. From three groups on, a group whose gradient is
    unlike all others is not followed: `aggregator-bias` measures whom that drops.

    It protects most groups from one; it never protects the one.
    """

    needs = "training groups"
    by_group = True
    title = "of the gradients of the groups in a batch, the median of every coordinate"
    cannot = "follow a group whose gradient is unlike those of all others"

    def optimizer(self, made: Any) -> Any:
        return _Median(made)


class _Median:
    """Steps `made` with the median of the groups' gradients; it has no state of its own."""

    def __init__(self, made: Any) -> None:
        self._made = made

    def step(self, closure: Callable[[int], Any], groups: Sequence[int]) -> None:
        import torch

        every = [p for group in self._made.param_groups for p in group["params"]]
        kept: list[list[Any]] = []
        for group in groups:
            closure(int(group))
            kept.append([None if p.grad is None else p.grad.detach().clone() for p in every])
        with torch.no_grad():
            for p, *own in zip(every, *kept, strict=True):
                if p.grad is not None:
                    p.grad.copy_(torch.stack(own).quantile(0.5, dim=0))
        self._made.step()
