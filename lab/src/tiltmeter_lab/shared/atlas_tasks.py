"""Three small tasks for the atlas of biases, each under four distributions of the inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import tiltmeter as tm
import tiltmeter_lab as lab

#: The last one is images, 8 x 8 pixels of handwritten digits; the others are independent coordinates.
DATA = ("uniform", "dense half", "normal", "digits")
WAVES = lab.data.Sines((1, 4))
#: Coordinates of the task with an easy and a hard feature, and which of them those are.
INPUTS, EASY, HARD = 8, (0,), (1, 2)
#: Variances of the principal components, from the largest to the smallest.
SPECTRUM = np.geomspace(1.0, 0.05, 8)
#: Held-out points, and those of the regular grid of the waves.
HELD_OUT, GRID = 400, 128


def positions(data: str, shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    """Numbers in [-1, 1]: evenly, four times as many below 0 as above, or normal with standard deviation 0.4.

    >>> float(positions("dense half", (1000,), np.random.default_rng(0)).mean()) < -0.2
    True
    """
    if data == "uniform":
        return generator.uniform(-1.0, 1.0, shape)
    if data == "dense half":
        below = generator.random(shape) < 0.8
        return np.where(below, -1.0, 1.0) * generator.random(shape)
    if data == "normal":
        return np.clip(0.4 * generator.normal(size=shape), -1.0, 1.0)
    raise KeyError(f"No distribution {data!r}. There are: {', '.join(DATA)}.")


@dataclass(frozen=True)
class Task:
    """Points to train on and to look at, and the share of the initial loss at which runs are compared.

    `easy` and `hard` are the coordinates of the two features, where there are such.
    """

    train: tm.GroupedData
    held_out: tm.GroupedData
    matched: float
    easy: tuple[int, ...] = ()
    hard: tuple[int, ...] = ()


def waves(data: str, points: int, seed: int) -> Task | None:
    """A slow and a fast wave of one number, of equal size; looked at on a regular grid. Images have no such task."""
    if data == "digits":
        return None
    x = positions(data, (points,), np.random.default_rng([seed, 1]))
    grid = WAVES.grid(GRID)
    return Task(_data(x[:, None], WAVES(x)), _data(grid[:, None], WAVES(grid)), 0.7)


def two_features(data: str, points: int, seed: int) -> Task:
    """Labels -1 and +1 that an easy coordinate tells (its sign) and hard ones tell too.

    These are two coordinates near 0 or far from it; in images, all pixels but the first, which show a digit below 5 or
    another, while the first pixel, which is empty in all of them, holds the easy coordinate.
    """
    generator = np.random.default_rng([seed, 2])
    parts = _images(points, generator) if data == "digits" else [_rings(data, n, generator) for n in (points, HELD_OUT)]
    made = []
    for x, y in parts:
        easy = generator.random(len(y)) if data == "digits" else np.abs(x[:, 0])
        x[:, 0] = y * (0.1 + 0.9 * easy)
        made.append(_data(x, y))
    hard = tuple(range(1, 64)) if data == "digits" else HARD
    return Task(made[0], made[1], 0.4, EASY, hard)


def _rings(data: str, count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    y = generator.permutation(np.where(np.arange(count) % 2 == 0, 1.0, -1.0))
    x = positions(data, (count, INPUTS), generator)
    for column in HARD:
        inside = 0.25 * x[:, column]
        outside = np.sign(x[:, column]) * (0.55 + 0.45 * np.abs(x[:, column]))
        x[:, column] = np.where(y > 0, outside, inside)
    return x, y


def _images(points: int, generator: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    chosen = generator.permutation(len(bunch.target))[: points + HELD_OUT]
    x, y = bunch.data / 8.0 - 1.0, np.where(bunch.target >= 5, 1.0, -1.0)
    return [(x[some].copy(), y[some]) for some in (chosen[:points], chosen[points:])]


def components(data: str, points: int, seed: int) -> Task:
    """A linear target to which every principal component of the inputs contributes the same variance.

    Inputs have the variances `SPECTRUM`. Those of images are the first eight components of all digits.
    """
    generator = np.random.default_rng([seed, 3])
    size = (points + HELD_OUT, len(SPECTRUM))
    drawn = _scores(size[0], generator) if data == "digits" else positions(data, size, generator)
    parts = []
    for plain in (drawn[:points], drawn[points:]):
        plain = (plain - plain.mean(0)) / plain.std(0)
        parts.append(_data(plain * np.sqrt(SPECTRUM), plain.sum(1) / np.sqrt(len(SPECTRUM))))
    return Task(parts[0], parts[1], 0.5)


def _scores(count: int, generator: np.random.Generator) -> np.ndarray:
    from sklearn.datasets import load_digits

    x = load_digits().data
    x = x - x.mean(0)
    axes = np.linalg.svd(x, full_matrices=False)[2][: len(SPECTRUM)]
    return np.asarray((x @ axes.T)[generator.permutation(len(x))[:count]])


TASKS: dict[str, Callable[[str, int, int], Task | None]] = {
    "waves": waves,
    "two features": two_features,
    "components": components,
}


def _data(x: np.ndarray, y: np.ndarray) -> tm.GroupedData:
    return tm.GroupedData(x.astype(np.float32), y.astype(np.float32), np.zeros(len(y), dtype=int))
