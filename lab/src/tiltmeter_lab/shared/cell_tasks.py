"""Tasks with a shortcut whose groups are the cells (label, attribute), in four parts drawn anew for every seed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import tiltmeter as tm
import tiltmeter_lab as lab

#: The cells by name; the attribute that goes with a label is the one of the same number.
CELLS = {(label, attribute): f"label {label}, attribute {attribute}" for label in (0, 1) for attribute in (0, 1)}
#: The attribute of every cell.
ATTRIBUTE: dict[Hashable, Hashable] = {name: attribute for (_, attribute), name in CELLS.items()}
#: The cells whose attribute contradicts the label.
CONFLICTING = tuple(name for (label, attribute), name in CELLS.items() if label != attribute)
HIDDEN = (64, 64)


@dataclass(frozen=True)
class Parts:
    """Points to train on, to fit what an intervention delivers, to choose settings and evaluations, and to judge."""

    train: tm.GroupedData
    validation: tm.GroupedData
    choose: tm.GroupedData
    judge: tm.GroupedData


@dataclass(frozen=True)
class Sizes:
    """How many points each part has."""

    train: int = 1200
    validation: int = 150
    choose: int = 150
    judge: int = 280

    @property
    def ends(self) -> np.ndarray:
        return np.cumsum([self.train, self.validation, self.choose, self.judge])


#: What a task is made of: (points, labels) for a generator and the number of points; and the marks of an attribute.
Source = tuple[Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]], Callable[..., np.ndarray]]


def parts(task: str, seed: int, sizes: Sizes = Sizes(), aligned: float = 0.95) -> Parts:
    """The parts of a task for one seed: points, attributes and their order are all drawn by it.

    >>> made = parts("toy", seed=0)
    >>> made.train.sizes["label 0, attribute 1"], made.judge.sizes["label 0, attribute 1"] > 60
    (30, True)

    A share `aligned` of the training points of either label has the attribute of the label's number; in the other parts
    the attribute says nothing about the label. Adult is as it is: labels are incomes, the attribute is sex.
    """
    rng = np.random.default_rng((2026, seed))
    if task == "adult":
        return _adult(rng, sizes)
    draw, mark = SOURCES[task]
    x, y = draw(rng, int(sizes.ends[-1]))
    places = np.split(np.arange(len(y)), sizes.ends[:-1])
    attribute = np.concatenate(
        [_attributes(y[own], share, rng) for own, share in zip(places, (aligned, 0.5, 0.5, 0.5), strict=True)]
    )
    marked = mark(x, attribute, rng)
    return Parts(*(_cells(marked[own], y[own], attribute[own]) for own in places))


def inputs_of_attribute(task: str) -> tuple[int, ...]:
    """The inputs that say the attribute and nothing else; none in coloured MNIST, where every pixel says both.

    >>> inputs_of_attribute("toy"), inputs_of_attribute("digits"), inputs_of_attribute("coloured-mnist")
    ((0,), (64, 65, 66, 67), ())
    """
    if task != "adult":
        return {"toy": (0,), "digits": tuple(range(64, 68))}.get(task, ())

    people, _ = _both(tm.data.adult)
    halves = [people.x[people.codes == code] for code in (0, 1)]
    constant = [np.ptp(half, axis=0) == 0.0 for half in halves]
    return tuple(np.flatnonzero(constant[0] & constant[1] & (halves[0][0] != halves[1][0])).tolist())


def network(inputs: int, seed: int) -> Any:
    """The untrained network of a seed."""
    import torch

    torch.manual_seed(seed)
    return tm.modules.mlp(inputs, HIDDEN, 1)


def plain_recipe(steps: int) -> tm.Recipe:
    """Plain SGD, the same for all tasks."""
    return tm.Recipe(lr=0.1, steps=steps, batch=64, loss=tm.Logistic())


def _attributes(y: np.ndarray, aligned: float, rng: np.random.Generator) -> np.ndarray:
    """The attribute of every point: exactly a share `aligned` of either label has the label's."""
    found = y.copy()
    for label in (0, 1):
        own = rng.permutation(np.flatnonzero(y == label))
        found[own[: round((1.0 - aligned) * len(own))]] = 1 - label
    return found


def _cells(x: np.ndarray, y: np.ndarray, attribute: np.ndarray) -> tm.GroupedData:
    members = [CELLS[int(label), int(a)] for label, a in zip(y, attribute, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # cells are small on purpose
        return tm.GroupedData(np.asarray(x, dtype=np.float32), y, members, groups=list(CELLS.values()))


def _noise(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Ten weak inputs that follow the label, and nine of noise."""
    y = rng.permutation(np.arange(count) % 2)
    x = rng.normal(size=(count, 20))
    x[:, 1:11] += 0.6 * (2 * y - 1)[:, None]
    return x, y


def _strong_input(x: np.ndarray, attribute: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One strong input that follows the attribute."""
    marked = x.copy()
    marked[:, 0] = 2.0 * (2 * attribute - 1) + 0.3 * rng.normal(size=len(x))
    return marked


def _digits(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:

    halves = tm.data.plain_digits()
    pixels, label = (np.concatenate([getattr(part, name) for part in halves]) for name in ("x", "y"))
    return _drawn(pixels, label, rng, count)


def _patch(x: np.ndarray, attribute: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # noqa: ARG001
    """Four more pixels that follow the attribute."""
    return np.concatenate([x, 1.5 * np.repeat((2 * attribute - 1)[:, None], 4, axis=1)], axis=1)


@lru_cache(1)
def _small_mnist() -> tuple[np.ndarray, np.ndarray]:
    """Test images of MNIST in 14 x 14 pixels between 0 and 1."""

    images = lab.data.mnist("test")
    pixels = np.asarray(images.x, dtype=float).reshape(-1, 14, 2, 14, 2).mean((2, 4))
    return pixels.reshape(len(pixels), -1) / pixels.max(), np.asarray(images.y)


def _mnist(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    return _drawn(*_small_mnist(), rng, count)


def _colour(x: np.ndarray, attribute: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # noqa: ARG001
    """Two colour channels, of which one is empty."""
    return np.concatenate([x * (attribute == channel)[:, None] for channel in (0, 1)], axis=1)


def _drawn(x: np.ndarray, label: np.ndarray, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Some of the pictures; the label is whether the digit is 5 or more."""
    chosen = rng.permutation(len(x))[:count]
    return x[chosen], (label[chosen] >= 5).astype(np.int64)


def _adult(rng: np.random.Generator, sizes: Sizes) -> Parts:

    people, others = _both(tm.data.adult)
    chosen = rng.permutation(len(people))[: sizes.train]
    rest = np.split(rng.permutation(len(others))[: sizes.ends[-1] - sizes.train], sizes.ends[:-1][1:] - sizes.train)
    found = [people.take(chosen)]
    found += [others.take(places) for places in rest]
    return Parts(*(_cells(part.x, part.y, part.codes) for part in found))


@lru_cache(1)
def _both(load: Callable[[], tuple[tm.GroupedData, tm.GroupedData]]) -> tuple[tm.GroupedData, tm.GroupedData]:
    return load()


SOURCES: dict[str, Source] = {
    "toy": (_noise, _strong_input),
    "digits": (_digits, _patch),
    "coloured-mnist": (_mnist, _colour),
}
