"""Factor: what is kept of the gradients of some points, enough to multiply any two of them."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor


class Factor(Protocol):
    """The gradients of n points and C outputs with respect to the parameters of one layer, in some form."""

    @property
    def nbytes(self) -> int:
        """Memory that keeping it takes."""

    def folded(self) -> Factor:
        """The same gradients with the outputs laid side by side, so that products sum over equal outputs."""

    def settled(self) -> Factor:
        """The form in which products with many other points cost least."""

    def gram(self, other: Any) -> Tensor:
        """Inner products with the gradients of other points in the same form, (n C, m C)."""
