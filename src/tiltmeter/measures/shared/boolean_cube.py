"""BooleanCube: the inputs of a model that takes bits, and its decisions on any of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from tiltmeter.measures.seen_model import SeenModel
from tiltmeter.measures.snapshot import Snapshot

#: Bits up to which the whole cube is put through the model.
EXACT_BITS = 16
#: Inputs that go through the model at once: cubes are many small points.
TOGETHER = 4096


@dataclass(frozen=True)
class BooleanCube:
    """Points that take one of two values in each of `bits` places, as the model wants them."""

    seen: SeenModel
    shape: tuple[int, ...]
    low: float
    high: float

    @property
    def bits(self) -> int:
        return int(np.prod(self.shape))

    def scores(self, ones: Tensor) -> Tensor:
        """Scores of points given by where they have the higher value, a boolean (points, bits)."""
        seen = replace(self.seen, chunk=max(self.seen.chunk, TOGETHER))
        low, high = (torch.tensor(value, dtype=seen.x.dtype) for value in (self.low, self.high))
        return seen.scores(torch.where(ones, high, low).reshape(-1, *self.shape))

    def every(self) -> Tensor:
        """The scores of all 2^bits points; place k has the higher value at bit i where k has that binary digit."""
        if self.bits > EXACT_BITS:
            raise ValueError(
                f"The whole cube is read up to {EXACT_BITS} bits. Found {self.bits}: use BooleanSensitivity, which "
                "samples beyond."
            )
        digits = torch.arange(2**self.bits)[:, None] >> torch.arange(self.bits)
        return self.scores((digits & 1).bool())


def boolean_cube(snapshot: Snapshot) -> BooleanCube:
    """The cube of the points looked at, whose features should take two values between them."""
    seen = snapshot.model
    found = torch.unique(seen.x)
    if len(found) != 2:
        raise ValueError(
            f"A Boolean measure takes points whose features have two values, as -1 and +1. Found {len(found)} "
            f"{'value' if len(found) == 1 else 'values'}."
        )
    return BooleanCube(seen, tuple(seen.x.shape[1:]), found[0].item(), found[1].item())
