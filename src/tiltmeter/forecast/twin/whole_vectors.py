"""Whole vectors: tensors split so that a fused kernel takes all of their numbers by the same instructions.

The processor takes numbers by vectors, and the last few of a tensor one by one, with another rounding. What a twin
learns would then depend, in the last bit, on how many others are in its stack. So the last few get their own vector.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

#: Numbers of the longest vector of today's processors, in single precision.
LENGTH = 16


class WholeVectors:
    """Parameters and gradients as a kernel gets them: `bring` copies the last few numbers in, `take_back` out again."""

    def __init__(self, parameters: Sequence[Tensor], gradients: Sequence[Tensor]) -> None:
        self.parameters, self.gradients = list[Tensor](), list[Tensor]()
        self._copies, self._own = list[Tensor](), list[Tensor]()
        for pair in zip(parameters, gradients, strict=True):
            flat = [one.view(-1) for one in pair]
            end = len(flat[0]) // LENGTH * LENGTH
            if end:
                self._add(flat[0][:end], flat[1][:end])
            if end < len(flat[0]):
                spare = [one.new_zeros(LENGTH) for one in flat]
                self._add(*spare)
                self._copies += [one[: len(flat[0]) - end] for one in spare]
                self._own += [one[end:] for one in flat]

    def bring(self) -> None:
        """Copy the last few numbers of parameters and gradients to the vectors."""
        if self._own:
            torch._foreach_copy_(self._copies, self._own)

    def take_back(self) -> None:
        """Copy those of the parameters back."""
        if self._own:
            torch._foreach_copy_(self._own[::2], self._copies[::2])

    def _add(self, parameter: Tensor, gradient: Tensor) -> None:
        self.parameters.append(parameter)
        self.gradients.append(gradient)
