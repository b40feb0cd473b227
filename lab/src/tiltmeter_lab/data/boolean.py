"""Boolean functions on the cube {-1, +1}^n (parity, majority, functions of few bits, random), and data from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tiltmeter.data.grouped import GroupedData

#: From points (points, n) of -1 and +1 to labels (points,) of -1 and +1.
BooleanFunction: TypeAlias = Callable[[np.ndarray], np.ndarray]

#: Largest number of bits for which the whole cube is enumerated.
MOST_BITS = 20


@dataclass(frozen=True)
class Parity:
    """The product of these bits. Its sensitivity is their number divided by n, the largest possible for so many bits.

    >>> Parity((0, 2))(np.array([[1, 1, -1], [-1, 1, -1]])).tolist()
    [-1.0, 1.0]

    Args:
        bits: Places of the bits that are multiplied.
    """

    bits: tuple[int, ...]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(np.prod(x[:, list(self.bits)], axis=1, dtype=float))


@dataclass(frozen=True)
class Majority:
    """The majority of all bits, or of these bits; their number should be odd, so that there is no tie."""

    bits: tuple[int, ...] | None = None

    def __call__(self, x: np.ndarray) -> np.ndarray:
        voting = x if self.bits is None else x[:, list(self.bits)]
        if voting.shape[1] % 2 == 0:
            raise ValueError(f"A majority needs an odd number of bits. Found {voting.shape[1]} bits.")
        return np.asarray(np.sign(voting.sum(1, dtype=float)))


@dataclass(frozen=True)
class Sparse:
    """A random function of only these bits: a table of labels drawn with `seed`."""

    bits: tuple[int, ...]
    seed: int = 0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        table = np.random.default_rng(self.seed).choice([-1.0, 1.0], 2 ** len(self.bits))
        return np.asarray(table[places(x[:, list(self.bits)])])


@dataclass(frozen=True)
class RandomFunction:
    """Every point of the cube has its own label, drawn with `seed`: sensitivity near one half."""

    seed: int = 0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        _check_bits(x.shape[1])
        return Sparse(tuple(range(x.shape[1])), self.seed)(x)


def cube(n: int) -> np.ndarray:
    """All 2^n points of {-1, +1}^n; bit i of point k is +1 if binary digit i of k is 1.

    >>> cube(2).tolist()
    [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]]

    Args:
        n: Number of bits.
    """
    _check_bits(n)
    digits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    return 2.0 * digits - 1.0


def places(x: np.ndarray) -> np.ndarray:
    """The index of every point in the `cube` of its dimension."""
    return np.asarray((np.asarray(x) > 0) @ (1 << np.arange(x.shape[1])))


def boolean_data(
    function: BooleanFunction, n: int, points: int | None = None, noise: float = 0.0, seed: int = 0
) -> GroupedData:
    """Points of the cube with their labels: all, or this number of distinct ones; a share `noise` of labels is flipped.

    >>> data = boolean_data(Parity((0, 1)), n=8, points=128)
    >>> data.x.shape, data.labels.tolist()
    ((128, 8), [-1.0, 1.0])

    Groups are "clean" and "flipped" if there is noise, otherwise the labels. With more than 20 bits, points are drawn
    with replacement, because they hardly ever repeat.

    Args:
        function: Gives the label of points of the cube, such as `Parity((0, 1))`.
        n: Number of bits.
        points: Number of distinct points; None: all of the cube.
        noise: Share of labels that is flipped.
        seed: Seed of the random draws; the same seed gives the same points.
    """
    if not 0 <= noise < 1:
        raise ValueError(f"`noise` should be a share of labels, from 0 and below 1. Found noise = {noise}.")
    rng = np.random.default_rng(seed)
    if n <= MOST_BITS:
        every = cube(n)
        if points is not None and not 1 <= points <= len(every):
            raise ValueError(f"`points` should be at most 2^n = {len(every)}, and at least 1. Found points = {points}.")
        x = every if points is None else every[rng.permutation(len(every))[:points]]
    elif points is None:
        raise ValueError(f"`points` should say how many, where there are more than {MOST_BITS} bits. Found None.")
    else:
        x = rng.choice([-1.0, 1.0], (points, n))
    y = function(x)
    if noise == 0:
        return GroupedData(x, y, "label")
    flipped = np.zeros(len(x), dtype=bool)
    flipped[rng.permutation(len(x))[: round(noise * len(x))]] = True
    return GroupedData(x, np.where(flipped, -y, y), np.where(flipped, "flipped", "clean"))


def _check_bits(n: int) -> None:
    if not 1 <= n <= MOST_BITS:
        raise ValueError(f"`n` should be from 1 to {MOST_BITS} to enumerate the cube. Found n = {n}.")
