"""Tasks for interventions: a network, its recipe and data in which one group is rare or contradicts a shortcut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

import tiltmeter as tm
import tiltmeter_lab as lab

Source = Literal["toy", "digits", "fashion-mnist", "adult"]
#: Sources that must be downloaded.
DOWNLOADED = ("fashion-mnist", "adult")


@dataclass(frozen=True)
class CureTask:
    """One network on one data set. `aligned` is the share of training points whose shortcut agrees with the label."""

    source: Source
    seed: int
    width: int = 256
    optimiser: Literal["sgd", "adamw"] = "sgd"
    aligned: float = 0.95

    @property
    def name(self) -> str:
        shortcut = "" if self.source == "adult" else f", aligned {self.aligned:g}"
        return f"{self.source}{shortcut}, {self.optimiser}, width {self.width}, draw {self.seed}"

    def data(self, points: int, held_out: int) -> tuple[tm.GroupedData, tm.GroupedData]:
        """What to train on and what to look at; there the shortcut says nothing about the label."""
        return SOURCES[self.source](self, points, held_out)

    def model(self, inputs: int, seed: int) -> Any:
        """The network of a seed."""
        import torch

        torch.manual_seed(seed)
        return tm.modules.mlp(inputs, (self.width,), 1)

    def recipe(self, steps: int, batch: int = 64) -> tm.Recipe:
        """How it is trained plainly."""
        if self.optimiser == "sgd":
            return tm.Recipe(lr=0.05, steps=steps, batch=batch, loss=tm.Logistic())
        import torch

        return tm.Recipe(partial(torch.optim.AdamW, lr=1e-3), steps=steps, batch=batch, loss=tm.Logistic())


def drawn(count: int, seed: int = 2026) -> tuple[CureTask, ...]:
    """Tasks drawn by a fixed rule: data sets in turn, everything else at random.

    >>> [task.source for task in drawn(4)]
    ['digits', 'fashion-mnist', 'adult', 'digits']
    """
    rng = np.random.default_rng(seed)
    sources: tuple[Source, ...] = ("digits", "fashion-mnist", "adult")
    found = []
    for number in range(count):
        width, optimiser = int(rng.choice([128, 256])), str(rng.choice(["sgd", "adamw"]))
        aligned = float(rng.choice([0.9, 0.95, 0.98]))
        found.append(CureTask(sources[number % 3], 100 + number, width, optimiser, aligned))  # type: ignore[arg-type]
    return tuple(found)


def _toy(task: CureTask, points: int, held_out: int) -> tuple[tm.GroupedData, tm.GroupedData]:
    """One strong input that follows the attribute, ten weak ones that follow the label, nine of noise."""
    rng = np.random.default_rng(task.seed)

    def part(count: int, aligned: float) -> tm.GroupedData:
        y = rng.integers(0, 2, count)
        a = np.where(rng.random(count) < aligned, y, 1 - y)
        x = rng.normal(size=(count, 20))
        x[:, 0] = 2.0 * (2 * a - 1) + 0.3 * rng.normal(size=count)
        x[:, 1:11] += 0.6 * (2 * y - 1)[:, None]
        return _cells(x, y, a)

    return part(points, task.aligned), part(held_out, 0.5)


def _patched(task: CureTask, points: int, held_out: int) -> tuple[tm.GroupedData, tm.GroupedData]:
    """Pictures of two halves of the classes, with four extra pixels that follow the attribute."""
    pixels, label = _pictures(task.source)
    rng = np.random.default_rng(task.seed)
    order = rng.permutation(len(pixels))

    def part(chosen: np.ndarray, aligned: float) -> tm.GroupedData:
        y = (label[chosen] >= 5).astype(np.int64)
        a = np.where(rng.random(len(y)) < aligned, y, 1 - y)
        marks = 1.5 * np.repeat((2 * a - 1)[:, None], 4, axis=1)
        return _cells(np.concatenate([pixels[chosen], marks], axis=1), y, a)

    share = min(points, int(0.6 * len(order)))
    return part(order[:share], task.aligned), part(order[share : share + held_out], 0.5)


def _pictures(source: str) -> tuple[np.ndarray, np.ndarray]:
    if source == "digits":
        train, held_out = tm.data.plain_digits()
        pixels, label = np.concatenate([train.x, held_out.x]), np.concatenate([train.y, held_out.y])
    else:
        images = lab.data.fashion_mnist("test")
        pixels, label = images.x, images.y
    flat = np.asarray(pixels, dtype=float).reshape(len(pixels), -1)
    return flat / flat.max(), np.asarray(label)


def _adult(task: CureTask, points: int, held_out: int) -> tuple[tm.GroupedData, tm.GroupedData]:

    rng = np.random.default_rng(task.seed)
    return tuple(  # type: ignore[return-value]
        part.take(np.sort(rng.permutation(len(part))[:count]))
        for part, count in zip(tm.data.adult("sex"), (points, held_out), strict=True)
    )


def _cells(x: np.ndarray, y: np.ndarray, a: np.ndarray) -> tm.GroupedData:
    names = np.array(["conflicting", "aligned"])
    return tm.GroupedData(x.astype(np.float32), y, names[(a == y).astype(int)])


SOURCES: dict[str, Callable[[CureTask, int, int], tuple[tm.GroupedData, tm.GroupedData]]] = {
    "toy": _toy,
    "digits": _patched,
    "fashion-mnist": _patched,
    "adult": _adult,
}
