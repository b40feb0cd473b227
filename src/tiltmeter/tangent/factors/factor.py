"""Factor: a compact form of the gradients of some points, sufficient to compute their inner products."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor


class Factor(Protocol):
    """The gradients of n points and C outputs with respect to the parameters of one layer, in compact form."""

    @property
    def nbytes(self) -> int:
        """Memory that it takes, in bytes."""

    def folded(self) -> Factor:
        """The same gradients with the outputs side by side, so that inner products sum over equal outputs."""

    def settled(self) -> Factor:
        """The form in which inner products with many other points are cheapest."""

    def gram(self, other: Any) -> Tensor:
        """Inner products with the gradients of other points in the same form, (n C, m C)."""
