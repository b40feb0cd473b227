"""Tasks on which the routes of forecasts are judged: trainings as people run them, drawn before anything is trained.

Tasks come in cycles of six, one of every data set. Within a cycle, networks, optimisers, losses and numbers of groups
are dealt at random in fixed proportions; classes, shares and learning rates are random. Half of the tasks have SGD, so
that the kernel can be judged too. Half of those of images and COMPAS have three groups, whose small gaps cross more
often. None is dropped. The tasks on which forecasts are judged and those that calibrate their bands are different
numbers, fixed before any of them was run; numbers below a hundred were used while the routes were developed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.shared.forecast_tasks import PICTURES, _images
from tiltmeter_lab.shared.picture_tasks import random_task

if TYPE_CHECKING:
    from torch import nn

#: Part of every seed of these tasks.
STREAM = 17
DATA = ("mnist", "adult", "fashion-mnist", "compas", "cifar10", "german")
#: Four cycles of tasks that judge, six that calibrate, and eight that judge what was calibrated once more.
JUDGED, CALIBRATION, FURTHER = range(102, 126), range(204, 240), range(300, 348)
#: Tasks among which those with crossings are looked for: three groups wherever the data have them.
CROSSING = range(600, 696)
#: The networks of people in a cycle, and the MLPs from which those of images are dealt.
TABULAR, PERCEPTRONS = ("256", "256", "1024"), ("256", "1024", "1024-1024")
DEEP = ("resnet", "transformer")
OPTIMISERS = ("AdamW", "AdamW", "Adam", "SGD", "SGD", "SGD")
#: Smallest and largest learning rate of Adam; SGD with momentum 0.9 takes thirty times as much.
RATES = (1e-4, 1e-3)


@dataclass(frozen=True)
class WarmupCosine:
    """A rate that rises to `peak` over the first twentieth of the steps and falls as a cosine."""

    peak: float
    steps: int

    def __call__(self, step: float) -> float:
        first = max(1, self.steps // 20)
        if step < first:
            return self.peak * (step + 1) / first
        return float(self.peak * 0.5 * (1.0 + np.cos(np.pi * (step - first) / max(1, self.steps - first))))


@dataclass(frozen=True)
class RouteTask:
    """A network, its data and its recipe; `number` is the number of the draw and the seed of everything random."""

    number: int
    data: str
    network: str
    optimiser: str
    lr: float
    rho: float
    three: bool
    cross_entropy: bool
    warmup: bool

    @property
    def name(self) -> str:
        return f"{self.number:02d} {self.data} {self.network} {self.optimiser}"

    @property
    def three_groups(self) -> bool:
        """Whether it has three groups; Adult and German credit have two in every task."""
        return self.three and self.data not in ("adult", "german")

    @property
    def perceptron(self) -> bool:
        """Whether the network has Linear layers only."""
        return self.network not in DEEP

    def points(self, held_out: int) -> tuple[tm.GroupedData, tm.GroupedData]:
        """Training and held-out points; labels 0 and 1 where the network has two outputs, else -1 and +1."""
        train, validation = self._points(held_out)
        if len(validation) > 3 * held_out:  # of Adult, a part
            chosen = np.random.default_rng([STREAM, self.number, 2]).permutation(len(validation))[: 3 * held_out]
            validation = validation.take(np.sort(chosen))
        return tuple(_labelled(one, self.cross_entropy) for one in (train, validation))  # type: ignore[return-value]

    def _points(self, held_out: int) -> tuple[tm.GroupedData, tm.GroupedData]:
        if self.data == "adult":
            return tm.data.adult()
        if self.data == "german":
            return lab.data.german("age" if self.three else "sex")
        if self.data == "compas":
            both = ("African-American", "Caucasian")
            return tm.data.compas((*both, "Hispanic") if self.three else both)
        images, rng = _images(self.data), np.random.default_rng([STREAM, self.number, 1])
        x = np.asarray(images.x)
        if self.data == "cifar10":  # at half its resolution: training costs a quarter
            x = x.reshape(len(x), 3, 16, 2, 16, 2).mean((3, 5)).astype(np.uint8)
        if not self.three:
            return random_task(x, images.y, rng, self.rho, held_out)
        classes = rng.permutation(np.unique(images.y))[:6].tolist()
        groups = {name: ([classes[2 * i]], [classes[2 * i + 1]]) for i, name in enumerate("abc")}
        flat = lab.data.standardised(x.reshape(len(x), -1))
        train, validation = lab.data.set_aside(lab.data.by_classes(flat, np.asarray(images.y), groups), held_out, rng)
        rest = (1.0 - self.rho) / 2
        return lab.data.mixed(train, {"a": self.rho, "b": rest, "c": rest}, seed=int(rng.integers(2**31))), validation

    def model(self, inputs: int) -> nn.Module:
        """The network, initialised from torch's stream."""
        from torch import nn

        from tiltmeter_lab.networks import Block, transformer

        outputs = 2 if self.cross_entropy else 1
        side = (1, 28, 28) if inputs == 784 else (3, 16, 16)
        if self.network == "resnet":  # two residual blocks with batch normalisation
            size = side[1] // 7  # images become 7 x 7 or 8 x 8 places
            stem = nn.Conv2d(side[0], 32, size, size, bias=False), nn.BatchNorm2d(32), nn.ReLU()
            head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, outputs)
            return nn.Sequential(nn.Unflatten(1, side), *stem, Block(32, 32, 2), Block(32, 64, 2), *head)
        if self.network == "transformer":  # four rows of the image, or parts of its channels, are a token
            tokens, features = inputs // (4 * side[2]), 4 * side[2]
            rows = nn.Unflatten(1, (tokens, features))
            return nn.Sequential(rows, transformer(tokens, features, None, outputs, 64, 2, 8))
        return tm.modules.mlp(inputs, [int(width) for width in self.network.split("-")], outputs)

    def recipe(self, steps: int, order: int | None) -> tm.Recipe:
        """Batches of 64 in shuffled epochs, with a warm-up and a cosine where the task says so."""
        import torch

        rate = self.lr * (30.0 if self.optimiser == "SGD" else 1.0)
        more: dict[str, Any] = {"momentum": 0.9} if self.optimiser == "SGD" else {}
        make = partial(getattr(torch.optim, self.optimiser), lr=rate, **more)
        schedule = WarmupCosine(rate, steps) if self.warmup else None
        loss = tm.losses.CrossEntropy() if self.cross_entropy else tm.Logistic()
        return tm.Recipe(make, schedule=schedule, steps=steps, batch=64, order=order, loss=loss)


def draw_route_task(number: int) -> RouteTask:
    """The task of this number.

    >>> draw_route_task(102).name
    '102 mnist resnet Adam'
    """
    rng = np.random.default_rng([STREAM, number, 0])
    cycle, place = divmod(number, len(DATA))
    data = DATA[place]
    dealt = np.random.default_rng([STREAM, cycle, 3])
    tabular, images = iter(dealt.permutation(TABULAR)), iter(dealt.permutation(_networks_of_images(cycle, dealt)))
    networks = [str(next(images if name in PICTURES else tabular)) for name in DATA]
    optimisers, cross_entropy, three = (
        dealt.permutation(one) for one in (OPTIMISERS, [True] * 2 + [False] * 4, [True] * 3 + [False] * 3)
    )
    return RouteTask(
        number,
        data,
        networks[place],
        str(optimisers[place]),
        float(np.exp(rng.uniform(*np.log(RATES)))),
        round(float(rng.uniform(0.5, 0.9)), 2),
        three=bool(three[place]) or number in CROSSING,
        cross_entropy=bool(cross_entropy[place]),
        warmup=bool(rng.integers(2)),
    )


def _networks_of_images(cycle: int, rng: np.random.Generator) -> list[str]:
    """Both deep networks and an MLP in even cycles, one of them and two MLPs in odd ones."""
    deep = DEEP if cycle % 2 == 0 else DEEP[cycle // 2 % 2 :][:1]
    return [*deep, *rng.permutation(PERCEPTRONS)[: 3 - len(deep)].tolist()]


def _labelled(data: tm.GroupedData, zero_one: bool) -> tm.GroupedData:
    positive = data.y == data.labels[-1]
    members = np.asarray(data.group_labels)[data.codes]
    y = positive.astype(np.int64) if zero_one else np.where(positive, 1.0, -1.0)
    return tm.GroupedData(np.asarray(data.x, dtype=np.float32), y, members, groups=list(data.groups))
