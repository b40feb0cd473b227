"""Trainings of the tasks on which forecasts are judged, and their forecasts by every method."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep
from tiltmeter_lab.shared.route_tasks import RouteTask, draw_route_task

#: The run itself has this order plus its seed; a second training that of another thousand.
ORDER, OTHER = 100, 1100


@dataclass(frozen=True)
class Sizes:
    """How long tasks are trained and evaluated.

    Networks of more than one hidden layer are trained for `deep_steps`. `held_out` points of every group of images are
    held out; `per_decade` evaluations are taken for every factor of ten in steps."""

    steps: int = 60
    deep_steps: int = 60
    held_out: int = 200
    per_decade: int = 10
    copies: int = 3

    def steps_of(self, task: RouteTask) -> int:
        return self.steps if task.network in ("256", "1024") else self.deep_steps


class Prepared:
    """A task whose points are loaded when first needed: a resumed experiment may not need them."""

    def __init__(self, task: RouteTask, sizes: Sizes) -> None:
        self.task, self.sizes = task, sizes
        self._points: tuple[tm.GroupedData, tm.GroupedData] | None = None

    @property
    def points(self) -> tuple[tm.GroupedData, tm.GroupedData]:
        """What to train on and what to look at."""
        if self._points is None:
            self._points = self.task.points(self.sizes.held_out)
        return self._points

    def __call__(self, kind: str, seed: int) -> tm.Trajectory:
        """One run; the processor time that it took is noted in its Origin."""
        import torch

        inputs = int(np.prod(self.points[0].x.shape[1:]))
        torch.manual_seed(seed)
        model = self.task.model(inputs)
        began = time.process_time()
        found = KINDS[kind](self, model, seed)
        return _spent(found, time.process_time() - began)

    def recipe(self, order: int | None) -> Any:
        return self.task.recipe(self.sizes.steps_of(self.task), order)

    def train(self, model: Any, order: int) -> tm.Trajectory:

        watch = tm.Watch(when=tm.record.log_spaced(self.sizes.per_decade))
        return tm.train(model, *self.points, self.recipe(order), seed=order, watch=watch)

    def forecast(self, model: Any, order: int | None, method: Any) -> tm.Trajectory:

        watch = tm.Watch(when=tm.record.log_spaced(self.sizes.per_decade), points=False)
        return tm.forecast(model, *self.points, self.recipe(order), watch=watch, method=method, progress=False)

    def twin(self) -> Any:
        return tm.methods.Twin(share=1 / 8 if self.task.perceptron else 1 / 4)


KINDS: dict[str, Callable[[Prepared, Any, int], tm.Trajectory]] = {
    "trained": lambda made, model, seed: made.train(model, ORDER + seed),
    "trained again": lambda made, model, seed: made.train(model, OTHER + seed),
    "rehearsals": lambda made, model, seed: made.forecast(  # noqa: ARG005
        model, None, tm.methods.Rehearsal(made.sizes.copies)
    ),
    "twin": lambda made, model, seed: made.forecast(model, ORDER + seed, made.twin()),
    "twin without order": lambda made, model, seed: made.forecast(model, None, made.twin()),  # noqa: ARG005
}
#: Forecasts that are made of every seed, as the training itself is; the others of the first few.
EVERY_SEED = ("trained", "twin")


def task_runs(
    numbers: Iterable[int], sizes: Sizes, seeds: int, few: int, keep: Keep
) -> Iterator[tuple[str, tm.Trajectory]]:
    """Every run of these tasks with its name: the training and the twin from `seeds` seeds, the rest from `few`."""
    for number in numbers:
        made = Prepared(draw_route_task(number), sizes)
        for seed in range(seeds):
            for kind in KINDS if seed < few else EVERY_SEED:
                name = run_name(made.task, seed, kind)
                yield name, keep(name, partial(made, kind, seed))


def run_name(task: RouteTask, seed: int, kind: str) -> str:
    """How a run is called among those of an experiment."""
    return f"{task.name}, seed {seed}, {kind}"


def seconds(run: tm.Trajectory) -> float:
    """The processor time that this run took."""
    found: Any = run.origin.settings.get("cpu_seconds", float("nan"))
    return float(found)


def _spent(found: tm.Trajectory, time_spent: float) -> tm.Trajectory:
    origin = replace(found.origin, settings={**found.origin.settings, "cpu_seconds": time_spent})
    return tm.Trajectory(dict(found), found.clock, origin, found.diverged, points=found.points)
