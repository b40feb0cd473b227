"""Several: the gradients of a layer that is made of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from tiltmeter.tangent.factor import Factor


@dataclass(frozen=True)
class Several:
    """Factors of separate parameters; their products add up."""

    factors: Sequence[Factor]

    @property
    def nbytes(self) -> int:
        return sum(factor.nbytes for factor in self.factors)

    def folded(self) -> Several:
        return Several([factor.folded() for factor in self.factors])

    def settled(self) -> Several:
        return Several([factor.settled() for factor in self.factors])

    def gram(self, other: Several) -> Tensor:
        first, *more = (mine.gram(theirs) for mine, theirs in zip(self.factors, other.factors, strict=True))
        for product in more:
            first = first + product
        return first
