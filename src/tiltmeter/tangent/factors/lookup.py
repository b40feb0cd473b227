"""Lookup: gradients of a table (an embedding) of which each point uses T rows: row numbers and output gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

#: With this many times more shared rows than positions, few positions use the same row: zeros are left out.
SPARSE = 25

#: Largest number of entries in a temporary array of a product.
LARGEST = 2**24


@dataclass(frozen=True)
class Lookup:
    """The gradient of row v and output c is the sum of delta[c, t] over the positions t with lines[t] = v.

    `lines` is (points, T) and `delta` is (points, outputs, T, width). Only rows that both sides use contribute to a
    product, so its cost does not depend on the size of the table.
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
        (n, outputs, places, width), m = self.delta.shape, len(other.delta)
        if len(shared) > SPARSE * places:
            found = (self._sparse(shared) @ other._sparse(shared).T).toarray()
            return torch.from_numpy(found).to(self.delta)
        found = self.delta.new_zeros(n * outputs, m * outputs)
        step = max(1, LARGEST // (max(n, m) * outputs * width))
        for start in range(0, len(shared), step):
            some = shared[start : start + step]
            found += self._sums(some).flatten(0, 1) @ other._sums(some).flatten(0, 1).T
        return found

    def _among(self, some: Tensor) -> tuple[Tensor, Tensor]:
        """Which of these rows (sorted) each position uses, and its gradients; zero if it uses none of them."""
        place = torch.searchsorted(some, self.lines).clamp_(max=len(some) - 1)
        return place, self.delta * (some[place] == self.lines)[:, None, :, None]

    def _sparse(self, some: Tensor) -> Any:
        """Gradients of these rows, (points x outputs, rows x width), without the zeros."""
        from scipy.sparse import csr_array

        n, outputs, places, width = self.delta.shape
        place, masked = self._among(some)
        columns = place[:, :, None] * width + torch.arange(width, device=place.device)
        entries = places * width
        rows = csr_array(
            (
                masked.flatten().cpu().numpy(),
                columns[:, None].expand(masked.shape).flatten().cpu().numpy(),
                np.arange(0, n * outputs * entries + 1, entries),
            ),
            shape=(n * outputs, len(some) * width),
        )
        rows.eliminate_zeros()
        return rows

    def _sums(self, some: Tensor) -> Tensor:
        """Gradients of these rows, (points, outputs, rows x width)."""
        n, outputs, _, width = self.delta.shape
        place, masked = self._among(some)
        sums = self.delta.new_zeros(n, outputs, len(some), width)
        sums.scatter_add_(2, place[:, None, :, None].expand(masked.shape), masked)
        return sums.flatten(2)
