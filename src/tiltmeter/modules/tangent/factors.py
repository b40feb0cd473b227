"""Factors: compact forms of the gradients of some points, sufficient to compute their inner products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
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

    def at(self, places: Tensor) -> Tensor:
        """The gradients of some numbers of the layer, (n, C, places)."""


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

    def at(self, places: Tensor) -> Tensor:
        width = self.delta.shape[3]
        used = self.lines[..., None] == places // width
        return (self.delta[..., places % width] * used[:, None]).sum(2)

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

    def at(self, places: Tensor) -> Tensor:
        return self.gradients[:, :, places]


#: Largest number of entries in a temporary array of pairs of positions.
PAIRS = 2**24

#: Cost of an entry of such an array for memory access, in multiplications.
PASSING = 8


@dataclass(frozen=True)
class Tokens:
    """The gradient of output c is sum_t delta[c, t] a[t]^T, a matrix that is never stored.

    Inner products are sum_{t, t'} (a[t] . a'[t']) (delta[c, t] . delta'[c', t']), from two small Gram matrices. `a` is
    (points, T, inputs) and `delta` is (points, outputs, T, units).
    """

    a: Tensor
    delta: Tensor

    @property
    def nbytes(self) -> int:
        return (self.a.numel() + self.delta.numel()) * self.a.element_size()

    def folded(self) -> Tokens:
        return Tokens(self.a, self.delta.transpose(1, 2).flatten(2)[:, None])

    def settled(self) -> Tokens | Rows:
        places, inputs = self.a.shape[1:]
        outputs, units = self.delta.shape[1], self.delta.shape[3]
        as_pairs = places**2 * (inputs + outputs**2 * (units + PASSING))
        if places == 1 or as_pairs < outputs**2 * units * inputs:
            return self
        return Rows((self.delta.transpose(2, 3) @ self.a[:, None]).flatten(2))

    def gram(self, other: Tokens) -> Tensor:
        (n, places, _), (m, places_there, _) = self.a.shape, other.a.shape
        outputs = self.delta.shape[1]
        a, delta = other.a.flatten(0, 1), other.delta.flatten(0, 2)
        if places == places_there == 1:
            inputs = self.a.flatten(0, 1) @ a.T
            both = self.delta.flatten(0, 2) @ delta.T
            if outputs == 1:
                return both.mul_(inputs)
            return (both.view(n, outputs, m, outputs) * inputs[:, None, :, None]).view(n * outputs, m * outputs)
        found = self.a.new_empty(n, outputs, m, outputs)
        step = max(1, PAIRS // (places * outputs * len(delta)))
        for start in range(0, n, step):
            part = slice(start, start + step)
            inputs = (self.a[part].flatten(0, 1) @ a.T).view(-1, places, m, places_there)
            both = (self.delta[part].flatten(0, 2) @ delta.T).view(-1, outputs, places, m, outputs, places_there)
            found[part] = torch.einsum("itju,ictjdu->icjd", inputs, both)
        return found.view(n * outputs, m * outputs)

    def at(self, places: Tensor) -> Tensor:
        width = self.a.shape[2]
        return (self.delta[..., places // width] * self.a[:, None][..., places % width]).sum(2)
