"""MedianGradient: of the gradients of the groups in a batch, the median of every coordinate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tiltmeter.interventions.kinds import StepIntervention


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
