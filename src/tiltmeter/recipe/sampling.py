"""Sampling: which points are in the batch of a step, as a function of seed and step alone.

There is no state between steps, so a resumed run draws the same points as an uninterrupted one. Points are drawn for a
block of steps (a stretch) at a time, so code that runs through many steps should ask for them `in_turn`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.data.group_shares import share_of
from tiltmeter.data.grouped import GroupedData

#: Steps of one stretch of draws: long enough to make a step cheap, short enough to draw it again for one step of it.
STRETCH = 64


class Sampling(ABC):
    """How batches are made: stretches of steps, and the points of each stretch in order."""

    @abstractmethod
    def batches(self, data: GroupedData, batch: int) -> int:
        """Steps per stretch."""

    @abstractmethod
    def stretch(self, data: GroupedData, batch: int, seed: int, number: int) -> np.ndarray:
        """Return the places of all points of a stretch; step k of it takes those from k * batch to (k + 1) * batch."""

    def batch(self, data: GroupedData, batch: int, seed: int, step: int) -> np.ndarray:
        """The places of the points of one step."""
        number, place = divmod(step, self.batches(data, batch))
        return self.stretch(data, batch, seed, number)[place * batch : (place + 1) * batch]

    def in_turn(self, data: GroupedData, batch: int, seed: int) -> Callable[[int], np.ndarray]:
        """The places of the points of any step, for a loop over steps: a stretch is drawn once for all of its steps.

        >>> data = GroupedData(np.zeros((5, 1)), np.zeros(5), np.zeros(5))
        >>> each = Epochs().in_turn(data, 2, seed=0)
        >>> sorted(np.concatenate([each(step) for step in range(3)]).tolist())
        [0, 1, 2, 3, 4]
        """
        steps = self.batches(data, batch)
        kept = -1, np.empty(0, dtype=np.int64)

        def places(step: int) -> np.ndarray:
            nonlocal kept
            number, place = divmod(step, steps)
            if kept[0] != number:
                kept = number, self.stretch(data, batch, seed, number)
            return kept[1][place * batch : (place + 1) * batch]

        return places


@dataclass(frozen=True)
class Epochs(Sampling):
    """Finite data: every point once per epoch, shuffled anew; the last batch of an epoch may be smaller."""

    def batches(self, data: GroupedData, batch: int) -> int:
        return -(-len(data) // batch)

    def stretch(self, data: GroupedData, batch: int, seed: int, number: int) -> np.ndarray:  # noqa: ARG002
        return np.random.default_rng((seed, number)).permutation(len(data))


@dataclass(frozen=True)
class Draws(Sampling):
    """Random draws: every point is drawn anew, its group with these proportions (None: as in the data)."""

    proportions: Mapping[Any, float] | None = None

    def batches(self, data: GroupedData, batch: int) -> int:  # noqa: ARG002
        return STRETCH

    def stretch(self, data: GroupedData, batch: int, seed: int, number: int) -> np.ndarray:
        rng = np.random.default_rng((seed, number))
        count = STRETCH * batch
        codes = rng.choice(len(data.groups), count, p=share_of(data, self.proportions))
        members = [data.of_group(group) for group in data.groups]
        sizes = np.asarray([len(places) for places in members])
        within = (rng.random(count) * sizes[codes]).astype(np.int64)
        return np.asarray(np.concatenate(members)[(np.cumsum(sizes) - sizes)[codes] + within])
