"""Rows: explicit gradients, one row per point and output."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Rows:
    """Gradients (points, outputs, parameters)."""

    gradients: Tensor

    @property
    def nbytes(self) -> int:
        return self.gradients.numel() * self.gradients.element_size()

    def folded(self) -> Rows:
        return Rows(self.gradients.flatten(1)[:, None])

    def settled(self) -> Rows:
        return self

    def gram(self, other: Rows) -> Tensor:
        return self.gradients.flatten(0, 1) @ other.gradients.flatten(0, 1).T
