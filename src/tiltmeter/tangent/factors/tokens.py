"""Tokens: gradients of a weight used at T positions of a point, as the inputs and the output gradients there."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tiltmeter.tangent.factors.rows import Rows

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
