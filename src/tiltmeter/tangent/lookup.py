"""Lookup: gradients of a table of which each point reads T lines, as the lines' numbers and output gradients."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

#: Numbers in the largest array that a product makes at a time.
LARGEST = 2**24


@dataclass(frozen=True)
class Lookup:
    """The gradient of line v and output c is the sum of delta[c, t] over the places t with lines[t] = v.

    `lines` is (points, T) and `delta` is (points, outputs, T, width). Only lines that both sides read can contribute to
    a product, so it never costs the size of the table.
    """

    lines: Tensor
    delta: Tensor

    @property
    def nbytes(self) -> int:
        return self.lines.numel() * self.lines.element_size() + self.delta.numel() * self.delta.element_size()

    def folded(self) -> Lookup:
        return Lookup(self.lines, self.delta.transpose(1, 2).flatten(2)[:, None])

    def settled(self) -> Lookup:
        return self

    def gram(self, other: Lookup) -> Tensor:
        shared = torch.unique(self.lines[torch.isin(self.lines, other.lines)])
        (n, outputs, _, width), m = self.delta.shape, len(other.delta)
        found = self.delta.new_zeros(n * outputs, m * outputs)
        step = max(1, LARGEST // (max(n, m) * outputs * width))
        for start in range(0, len(shared), step):
            some = shared[start : start + step]
            found += self._sums(some).flatten(0, 1) @ other._sums(some).flatten(0, 1).T
        return found

    def _sums(self, some: Tensor) -> Tensor:
        """Gradients of these lines (sorted) alone, (points, outputs, lines x width)."""
        n, outputs, _, width = self.delta.shape
        place = torch.searchsorted(some, self.lines).clamp_(max=len(some) - 1)
        masked = self.delta * (some[place] == self.lines)[:, None, :, None]
        sums = self.delta.new_zeros(n, outputs, len(some), width)
        sums.scatter_add_(2, place[:, None, :, None].expand(masked.shape), masked)
        return sums.flatten(2)
