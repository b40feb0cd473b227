"""Sampling: which points are in the batch of a step, as a function of seed and step alone.

There is no state between steps, so a resumed run draws the same points as an uninterrupted one. Points are drawn for a
block of steps (a stretch) at a time, so code that runs through many steps should ask for them `in_turn`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from tiltmeter.data.group_shares import share_of
from tiltmeter.data.grouped import GroupedData
from tiltmeter.record.labelled import JSON

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
    """Finite data: every point once per epoch, shuffled anew; the last batch of an epoch may be smaller.

    >>> data = GroupedData(np.zeros((100, 1)), np.zeros(100), ["a", "b"] * 50)
    >>> Epochs().batches(data, batch=32)  # the fourth has 4 points
    4
    >>> sorted(Epochs().stretch(data, 32, seed=0, number=0)) == list(range(100))
    True
    """

    def batches(self, data: GroupedData, batch: int) -> int:
        return -(-len(data) // batch)

    def stretch(self, data: GroupedData, batch: int, seed: int, number: int) -> np.ndarray:  # noqa: ARG002
        return np.random.default_rng((seed, number)).permutation(len(data))


@dataclass(frozen=True)
class Draws(Sampling):
    """Random draws: every point is drawn anew, its group with these proportions (None: as in the data).

    >>> import tiltmeter as tm
    >>> tm.Recipe(lr=0.1, steps=10, sampling=Draws({"a": 0.5, "b": 0.5})).sampling.proportions
    {'a': 0.5, 'b': 0.5}

    Args:
        proportions: How often each group is drawn; None: as in the data.
    """

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


#: Longer orders are not written into the description of a run, only their checksum.
KEPT = 100_000


@dataclass(frozen=True, eq=False)
class GivenOrder(Sampling):
    """Batches given one by one: `places` has one row per step, with the places of its points in the data.

    >>> order = GivenOrder(np.array([[0, 3], [2, 1]]))
    >>> order.steps, order == GivenOrder([[0, 3], [2, 1]])
    (2, True)
    """

    places: Any

    def __post_init__(self) -> None:
        try:
            found = np.asarray(self.places)
        except ValueError:  # rows of different lengths
            found = np.empty(0)
        if found.ndim != 2 or not found.size or found.dtype.kind not in "iu":
            raise ValueError(
                "`order` should be a seed, or an array of integers with one row of places for every step. "
                f"Found an array of shape {found.shape} and type {found.dtype}."
            )
        if found.min() < 0:
            raise ValueError(f"`order` should hold places from 0. Found {found.min()}.")
        kept = np.array(found, dtype=np.int64)
        kept.setflags(write=False)
        object.__setattr__(self, "places", kept)

    @property
    def steps(self) -> int:
        return int(self.places.shape[0])

    @property
    def size(self) -> int:
        """Points of every batch."""
        return int(self.places.shape[1])

    def batches(self, data: GroupedData, batch: int) -> int:  # noqa: ARG002
        return self.steps

    def stretch(self, data: GroupedData, batch: int, seed: int, number: int) -> np.ndarray:  # noqa: ARG002
        if number:
            raise IndexError("The order is shorter than the training.")  # refused before any training begins
        return np.array(self.places).ravel()  # torch needs a writable array

    def batch(self, data: GroupedData, batch: int, seed: int, step: int) -> np.ndarray:  # noqa: ARG002
        return np.array(self.places[step])

    def check(self, points: int, steps: int) -> None:
        """Refuse an order that does not fit the data and the length of the training."""
        if self.places.max() >= points:
            raise ValueError(
                f"`order` should hold places below {points}, the number of points. Found {self.places.max()}."
            )
        if self.steps < steps:
            raise ValueError(f"`order` should have a row for each of the {steps} steps. Found {self.steps}.")

    def to_json(self) -> JSON:
        """Return the places, or their shape and a checksum where there are many."""
        if self.places.size <= KEPT:
            return [[int(place) for place in row] for row in self.places]
        return {"shape": list(self.places.shape), "sha256": sha256(self.places.tobytes()).hexdigest()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GivenOrder) and np.array_equal(self.places, other.places)

    def __hash__(self) -> int:
        return hash(self.places.tobytes())
