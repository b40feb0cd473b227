"""Random tasks on which forecasts are judged: images in random groups, and people in their real groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.shared.picture_tasks import random_task

if TYPE_CHECKING:
    from torch import nn

PICTURES = {"mnist": lab.data.mnist, "fashion-mnist": lab.data.fashion_mnist, "cifar10": lab.data.cifar10}
PEOPLE: dict[str, Callable[[], tuple[tm.GroupedData, tm.GroupedData]]] = {
    "adult": tm.data.adult,
    "compas": tm.data.compas,
}
#: Networks alternate more slowly than data sets; half of them are plain MLPs.
NETWORKS = ("256", "256-256", "256", "cnn")
#: One of these is drawn. Larger rates add the noise of batches of 16, which a forecast leaves out.
RATES = (1e-3, 2e-3)
#: Part of every seed of these tasks, so that no other experiment draws the same numbers.
STREAM = 7


@dataclass(frozen=True)
class Task:
    """A network and its data; `number` is the number of the draw and the seed of everything random."""

    number: int
    data: str
    network: str
    rho: float | None
    lr: float

    @property
    def name(self) -> str:
        return f"{self.number:02d} {self.data}"

    def __str__(self) -> str:
        share = "" if self.rho is None else f", rho {self.rho:g}"
        return f"{self.data}, {self.network}{share}, lr {self.lr:g}"

    def points(self, held_out: int) -> tuple[tm.GroupedData, tm.GroupedData]:
        """Return training and held-out points: a fixed number per group for images, all held-out people."""
        if self.rho is None:
            data, validation = PEOPLE[self.data]()
            return _signed(data), _signed(validation)
        images = _images(self.data)
        return random_task(images.x, images.y, np.random.default_rng([STREAM, self.number, 1]), self.rho, held_out)

    def model(self, inputs: int) -> nn.Module:
        """The network, initialised from torch's stream."""
        from tiltmeter_lab.networks import plain_cnn

        if self.network == "cnn":
            return plain_cnn((1, 28, 28) if inputs == 784 else (3, 32, 32))
        return tm.modules.mlp(inputs, [int(width) for width in self.network.split("-")], 1)


def draw(number: int) -> Task:
    """Return the task of this number; data sets and networks alternate, everything else is random.

    >>> draw(0) == draw(0), draw(1).data
    (True, 'fashion-mnist')
    """
    rng = np.random.default_rng([STREAM, number, 0])
    data = tuple(PICTURES)[number % len(PICTURES)]
    network = NETWORKS[number // len(PICTURES) % len(NETWORKS)]
    return Task(number, data, network, round(float(rng.uniform(0.5, 0.95)), 2), float(rng.choice(RATES)))


def of_people(number: int, data: str) -> Task:
    """Return a task on tabular data with their real groups."""
    return Task(number, data, "256", None, RATES[0])


@cache
def _images(name: str) -> lab.data.Images:
    return PICTURES[name]()


def _signed(data: tm.GroupedData) -> tm.GroupedData:
    """Return labels 0 and 1 as -1 and +1, as for the images."""
    members = [data.groups[code] for code in data.codes]
    return tm.GroupedData(data.x, 2.0 * data.y - 1.0, members, groups=list(data.groups))
