"""Order: which points are in the batch of each step, as an array of their places in the data."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter.recipe.sampling import Sampling
from tiltmeter.record.labelled import JSON

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
