"""Tasks drawn before looking, on which forecasts are judged: pictures in random groups, people in their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.public.adult import adult
from tiltmeter.data.public.cifar10 import cifar10
from tiltmeter.data.public.compas import compas
from tiltmeter.data.public.fashion_mnist import fashion_mnist
from tiltmeter.data.public.grouping import random_task
from tiltmeter.data.public.images import Images
from tiltmeter.data.public.mnist import mnist

if TYPE_CHECKING:
    from torch import nn

PICTURES = {"mnist": mnist, "fashion-mnist": fashion_mnist, "cifar10": cifar10}
PEOPLE: dict[str, Callable[[], tuple[GroupedData, GroupedData]]] = {"adult": adult, "compas": compas}
#: Networks take turns, after the data sets: plain ones half of the time.
NETWORKS = ("256", "256-256", "256", "cnn")
#: One of these is drawn. Larger ones add the noise of single batches of 16, which no forecast knows.
RATES = (1e-3, 2e-3)
#: Part of every random stream of these tasks, so that no other experiment draws the same.
STREAM = 7


@dataclass(frozen=True)
class Task:
    """What is trained on what; `number` is that of the draw, from which everything random follows."""

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

    def points(self, look: int) -> tuple[GroupedData, GroupedData]:
        """What to train on and what to look at: of pictures, so many of each group; of people, all held out."""
        if self.rho is None:
            data, held_out = PEOPLE[self.data]()
            return _signed(data), _signed(held_out)
        images = _images(self.data)
        return random_task(images.x, images.y, np.random.default_rng([STREAM, self.number, 1]), self.rho, look)

    def model(self, inputs: int) -> nn.Module:
        """The network, initialised from torch's stream."""
        from tiltmeter.networks.mlp import mlp
        from tiltmeter.networks.plain_cnn import plain_cnn

        if self.network == "cnn":
            return plain_cnn((1, 28, 28) if inputs == 784 else (3, 32, 32))
        return mlp(inputs, [int(width) for width in self.network.split("-")], 1)


def draw(number: int) -> Task:
    """Task of this number; data sets and networks take turns, all else is drawn.

    >>> draw(0) == draw(0), draw(1).data
    (True, 'fashion-mnist')
    """
    rng = np.random.default_rng([STREAM, number, 0])
    data = tuple(PICTURES)[number % len(PICTURES)]
    network = NETWORKS[number // len(PICTURES) % len(NETWORKS)]
    return Task(number, data, network, round(float(rng.uniform(0.5, 0.95)), 2), float(rng.choice(RATES)))


def of_people(number: int, data: str) -> Task:
    """A task with the groups that people are counted in."""
    return Task(number, data, "256", None, RATES[0])


@cache
def _images(name: str) -> Images:
    return PICTURES[name]()


def _signed(data: GroupedData) -> GroupedData:
    """Labels 0 and 1 as -1 and +1, as those of the pictures."""
    members = [data.groups[code] for code in data.codes]
    return GroupedData(data.x, 2.0 * data.y - 1.0, members, groups=list(data.groups))
