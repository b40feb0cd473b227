"""BooleanCube: the inputs of a model that takes bits, and its decisions on any of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from tiltmeter.measures.seen_model import SeenModel
from tiltmeter.measures.snapshot import Snapshot

#: Largest number of bits for which the model is evaluated on the whole cube.
EXACT_BITS = 16
#: Inputs per forward pass: a cube has many small points.
TOGETHER = 4096


@dataclass(frozen=True)
class BooleanCube:
    """Points that have one of two values in each of `bits` positions, in the form that the model takes."""

    seen: SeenModel
    shape: tuple[int, ...]
    low: float
    high: float

    @property
    def bits(self) -> int:
        return int(np.prod(self.shape))

    def scores(self, ones: Tensor) -> Tensor:
        """Scores of points; `ones` is a boolean (points, bits) that is true where a point has the higher value."""
        seen = replace(self.seen, chunk=max(self.seen.chunk, TOGETHER))
        low, high = (torch.tensor(value, dtype=seen.x.dtype) for value in (self.low, self.high))
        return seen.scores(torch.where(ones, high, low).reshape(-1, *self.shape))

    def every(self) -> Tensor:
        """The scores of all 2^bits points; point k has the higher value at bit i if binary digit i of k is 1."""
        if self.bits > EXACT_BITS:
            raise ValueError(
                f"The whole cube is evaluated for up to {EXACT_BITS} bits. Found {self.bits}: use "
                "BooleanSensitivity, which samples the cube."
            )
        digits = torch.arange(2**self.bits)[:, None] >> torch.arange(self.bits)
        return self.scores((digits & 1).bool())


def boolean_cube(snapshot: Snapshot) -> BooleanCube:
    """The cube of the held-out points, whose features should have two values."""
    seen = snapshot.model
    found = torch.unique(seen.x)
    if len(found) != 2:
        raise ValueError(
            f"A Boolean measure takes points whose features have two values, such as -1 and +1. Found {len(found)} "
            f"{'value' if len(found) == 1 else 'values'}."
        )
    return BooleanCube(seen, tuple(seen.x.shape[1:]), found[0].item(), found[1].item())
