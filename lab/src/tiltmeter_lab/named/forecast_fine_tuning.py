"""Forecasts of fine-tuning: a network that has learned one task is trained on another, whole or only its last layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.clustered import clustered
from tiltmeter_lab.shared.forecast_tasks import _images
from tiltmeter_lab.shared.picture_tasks import random_task
from tiltmeter_lab.shared.route_scores import PairScore, pair_score, truths

if TYPE_CHECKING:
    from torch import nn

TITLE = "Fine-tuning is forecast better than training from scratch, by the kernel too"
PAPER = "tiltmeter's own claim, see docs/forecast.md"
NEEDS: tuple[str, ...] = ("mnist", "fashion-mnist")
#: Part of every seed of these tasks, and the number of the first; none was run before this file was written.
STREAM, FIRST = 23, 500
#: The run itself has this order plus its seed; a second training that of another thousand.
ORDER, OTHER = 100, 1100
#: How a training begins: untrained; after another task, all weights; after another task, only the last layer moves.
STARTS = ("from scratch", "fine-tuned", "frozen backbone")
TOLD = ("trained again", "twins", "linear head", "kernel")


@dataclass(frozen=True)
class Setting:
    """Tasks are taken in order from the first; half have SGD with momentum, half AdamW."""

    tasks: int = 2
    seeds: int = 1
    steps: int = 60
    before: int = 60
    held_out: int = 200
    width: int = 256
    sample: int = 300


QUICK = Setting()
FULL = Setting(tasks=8, seeds=3, steps=300, before=300, held_out=300, sample=600)


@dataclass(frozen=True)
class Task:
    """Groups of four classes of one data set, after a task of other groups of classes; numbers decide everything."""

    number: int
    data: str
    optimiser: str
    lr: float
    rho: float

    @property
    def name(self) -> str:
        return f"{self.number} {self.data} {self.optimiser}"

    def points(self, held_out: int, place: int) -> tuple[tm.GroupedData, tm.GroupedData]:
        """Of the first task (`place` 0), which is learned before, or of the second."""
        images = _images(self.data)
        rng = np.random.default_rng([STREAM, self.number, place])
        return random_task(np.asarray(images.x), np.asarray(images.y), rng, self.rho, held_out)

    def recipe(self, steps: int, order: int) -> tm.Recipe:
        import torch

        more: dict[str, Any] = {"momentum": 0.9} if self.optimiser == "SGD" else {}
        rate = self.lr * (30.0 if self.optimiser == "SGD" else 1.0)
        make = partial(getattr(torch.optim, self.optimiser), lr=rate, **more)
        return tm.Recipe(make, steps=steps, batch=64, order=order, loss=tm.Logistic())


def draw_task(number: int) -> Task:
    """The task of this number.

    >>> draw_task(500).name
    '500 mnist SGD'
    """
    rng = np.random.default_rng([STREAM, number])
    rate, rho = float(np.exp(rng.uniform(*np.log((1e-4, 1e-3))))), round(float(rng.uniform(0.5, 0.9)), 2)
    return Task(number, NEEDS[number // 2 % 2], ("SGD", "AdamW")[number % 2], rate, rho)


def run(setting: Setting, keep: Keep) -> Runs:
    """For every task, seed and start: the training, a second one with other batches, and the forecasts."""
    runs: dict[str, tm.Trajectory] = {}
    for number in range(FIRST, FIRST + setting.tasks):
        made = Prepared(draw_task(number), setting)
        for seed in range(setting.seeds):
            for start in STARTS:
                for kind in ("trained", *TOLD):
                    possible = {"kernel": made.task.optimiser == "SGD", "linear head": start == STARTS[2]}
                    if possible.get(kind, True) and (kind, start) != ("twins", STARTS[2]):
                        name = f"{made.task.name}, seed {seed}, {start}, {kind}"
                        runs[name] = keep(name, partial(made, seed, start, kind))
    return runs


class Prepared:
    """A task whose points and first networks are made when they are first needed."""

    def __init__(self, task: Task, setting: Setting) -> None:
        self.task, self.setting = task, setting
        self._points: dict[int, tuple[tm.GroupedData, tm.GroupedData]] = {}
        self._learned: dict[int, Any] = {}

    def points(self, place: int) -> tuple[tm.GroupedData, tm.GroupedData]:
        if place not in self._points:
            self._points[place] = self.task.points(self.setting.held_out, place)
        return self._points[place]

    def __call__(self, seed: int, start: str, kind: str) -> tm.Trajectory:

        model, watch = self.model(seed, start), tm.Watch(when=tm.record.log_spaced(12), points=kind == "trained")
        order = (OTHER if kind == "trained again" else ORDER) + seed
        recipe = self.task.recipe(self.setting.steps, order)
        if kind.startswith("trained"):
            return tm.train(model, *self.points(1), recipe, seed=order, watch=watch)
        methods: dict[str, Any] = {
            "twins": tm.methods.Twin(count=2),
            "linear head": tm.methods.Linear(),
            "kernel": tm.methods.Kernel(self.setting.sample),
        }
        return tm.forecast(model, *self.points(1), recipe, watch=watch, method=methods[kind], progress=False)

    def model(self, seed: int, start: str) -> nn.Module:
        """The network as the training finds it."""
        import torch

        torch.manual_seed(seed)
        inputs = int(np.prod(self.points(1)[0].x.shape[1:]))
        model = tm.modules.mlp(inputs, (self.setting.width,))
        if start == STARTS[0]:
            return model
        if seed not in self._learned:
            once = tm.Watch(when=tm.record.log_spaced(1), points=False)
            tm.train(model, *self.points(0), self.task.recipe(self.setting.before, seed), seed=seed, watch=once)
            self._learned[seed] = {name: value.clone() for name, value in model.state_dict().items()}
        model.load_state_dict(self._learned[seed])
        if start == STARTS[2]:
            for weight in list(model.parameters())[:-2]:
                weight.requires_grad_(False)
        return model


@dataclass(frozen=True)
class Scored:
    task: str
    start: str
    scores: Mapping[str, PairScore]


def scored(runs: Runs) -> list[Scored]:
    """Every training with the scores of all that foretells it; none is left out."""
    found = []
    for name in [name for name in runs if name.endswith(", trained")]:
        short = name.removesuffix(", trained")
        task, _, start = short.split(", ")
        (truth,) = truths(runs[name])
        made = {kind: runs[f"{short}, {kind}"] for kind in TOLD if f"{short}, {kind}" in runs}
        scores = {kind: pair_score(one, runs[name], truth) for kind, one in made.items()}
        found.append(Scored(task, start, scores))
    return found


def claims(runs: Runs) -> tuple[Claim, ...]:
    """That the linear theory holds best where little has to be learned."""
    every = scored(runs)
    seeds = len({name.split(", ")[1] for name in runs})

    def claim(sentence: str, found: tuple[float, float | None], what: str, asked: float) -> Claim:
        return Claim(sentence, found[0], what, asked, error=found[1], seeds=seeds, safe=False)

    what = "median correlation of the gap, less that from scratch"
    return (
        claim("The kernel forecasts fine-tuning better", _better(every, "kernel", STARTS[1]), f"{what}, SGD", 0.0),
        claim("Twins forecast fine-tuning better", _better(every, "twins", STARTS[1]), what, 0.0),
        claim(
            "A linear head is followed exactly where only the last layer moves",
            _median(every, "linear head", STARTS[2]),
            "median correlation of the gap, frozen backbone",
            0.999,
        ),
    )


def tables(runs: Runs) -> Mapping[str, tm.results.page.Table]:
    """Every start and method."""
    every = scored(runs)
    header = ("start", "forecast", "runs", "leaders", "correlation", "off / range", "final loss")
    rows = []
    for start in STARTS:
        for kind in TOLD:
            some = [one.scores[kind] for one in every if one.start == start and kind in one.scores]
            if some:
                right = [one.right for one in some if one.right is not None]
                middle, error = _median(every, kind, start)
                rest = [f"{np.nanmedian([getattr(one, name) for one in some]):.3f}" for name in ("off", "level")]
                course = f"{middle:.3f}" + ("" if error is None else f" ± {error:.3f}")
                rows.append((start, kind, str(len(some)), f"{sum(right)} of {len(right)}", course, *rest))
    return {"Fine-tuning, a frozen backbone and training from scratch": tm.results.page.Table(header, rows)}


def pictures(runs: Runs) -> Mapping[str, Any]:
    """One fine-tuned training with its twins."""
    name = next(name for name in runs if name.endswith(f"{STARTS[1]}, trained"))
    return {f"Task {name}": tm.plot.curves(runs[name.replace("trained", "twins")], runs[name])}


def _values(every: Sequence[Scored], kind: str, start: str) -> tuple[list[float], list[str]]:
    some = [one for one in every if one.start == start and kind in one.scores]
    return [one.scores[kind].correlation for one in some], [one.task for one in some]


def _median(every: Sequence[Scored], kind: str, start: str) -> tuple[float, float | None]:
    return clustered(*_values(every, kind, start))


def _better(every: Sequence[Scored], kind: str, start: str) -> tuple[float, float | None]:
    """The median with this start less that from scratch, of the same tasks and seeds."""
    (one, tasks), (other, _) = _values(every, kind, start), _values(every, kind, STARTS[0])
    return clustered(
        list(zip(one, other, strict=True)), tasks, lambda both: np.nanmedian(both[:, 0]) - np.nanmedian(both[:, 1])
    )
