"""Sampling: which points make the batch of a step, as a function of seed and step alone.

Nothing is remembered from step to step, so a resumed run draws what the uninterrupted one would have drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.data.grouped import GroupedData, share_of


@dataclass(frozen=True)
class Epochs:
    """Finite data: every point once per epoch, in a new order each time; the last batch of an epoch may be smaller."""

    def batches(self, data: GroupedData, batch: int) -> int:
        """Steps per epoch."""
        return -(-len(data) // batch)

    def batch(self, data: GroupedData, batch: int, seed: int, step: int) -> np.ndarray:
        epoch, place = divmod(step, self.batches(data, batch))
        order = np.random.default_rng((seed, epoch)).permutation(len(data))
        return order[place * batch : (place + 1) * batch]


@dataclass(frozen=True)
class Draws:
    """Online: every point of every batch is drawn anew, its group with these proportions (None: as in the data)."""

    proportions: Mapping[Any, float] | None = None

    def batch(self, data: GroupedData, batch: int, seed: int, step: int) -> np.ndarray:
        rng = np.random.default_rng((seed, step))
        counts = rng.multinomial(batch, share_of(data, self.proportions))
        chosen = [rng.choice(data.of_group(group), count) for group, count in zip(data.groups, counts, strict=True)]
        return rng.permutation(np.concatenate(chosen))
