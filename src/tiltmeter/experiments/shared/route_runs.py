"""Trainings of the tasks on which routes are judged, and their forecasts by every route."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter.experiments.catalogue import Keep
from tiltmeter.experiments.shared.route_tasks import RouteTask, draw_route_task
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory, log_spaced

#: The run itself has this order plus its seed; a second training that of another thousand.
ORDER, OTHER = 100, 1100


@dataclass(frozen=True)
class Sizes:
    """How long tasks are trained and looked at, and how much the routes may use.

    Networks of more than one hidden layer are trained for `deep_steps`. `look` points of every group of images are held
    out; `per_decade` looks are taken for every factor of ten in steps.
    """

    steps: int = 60
    deep_steps: int = 60
    look: int = 200
    per_decade: int = 10
    coordinates: int = 1000
    sample: int = 200

    def steps_of(self, task: RouteTask) -> int:
        return self.steps if task.network in ("256", "1024") else self.deep_steps


class Prepared:
    """A task whose points are loaded when first needed: a resumed experiment may not need them."""

    def __init__(self, task: RouteTask, sizes: Sizes) -> None:
        self.task, self.sizes = task, sizes
        self._points: tuple[GroupedData, GroupedData] | None = None

    @property
    def points(self) -> tuple[GroupedData, GroupedData]:
        """What to train on and what to look at."""
        if self._points is None:
            self._points = self.task.points(self.sizes.look)
        return self._points

    def __call__(self, kind: str, seed: int) -> Trajectory:
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

    def train(self, model: Any, order: int) -> Trajectory:
        from tiltmeter.training.loop import train

        watch = Watch(when=log_spaced(self.sizes.per_decade))
        return train(model, *self.points, self.recipe(order), seed=order, watch=watch)

    def forecast(self, model: Any, order: int | None, route: Any) -> Trajectory:
        from tiltmeter.forecast.forecast import forecast

        watch = Watch(when=log_spaced(self.sizes.per_decade), points=False)
        return forecast(model, *self.points, self.recipe(order), watch=watch, route=route, progress=False)

    def twin(self, count: int) -> Any:
        from tiltmeter.forecast.route import Twin

        return Twin(share=1 / 8 if self.task.perceptron else 1 / 4, count=count)

    def coordinates(self) -> Any:
        from tiltmeter.forecast.route import Coordinates

        return Coordinates(self.sizes.coordinates)

    def kernel(self) -> Any:
        from tiltmeter.forecast.route import Kernel

        return Kernel(self.sizes.sample)


#: The forecast by the route that is chosen without `route`.
DEFAULT = "default"
KINDS: dict[str, Callable[[Prepared, Any, int], Trajectory]] = {
    "trained": lambda made, model, seed: made.train(model, ORDER + seed),
    "trained again": lambda made, model, seed: made.train(model, OTHER + seed),
    "twins": lambda made, model, seed: made.forecast(model, ORDER + seed, made.twin(2)),
    "one twin": lambda made, model, seed: made.forecast(model, ORDER + seed, made.twin(1)),
    "twins without order": lambda made, model, seed: made.forecast(model, None, made.twin(2)),  # noqa: ARG005
    "coordinates": lambda made, model, seed: made.forecast(model, ORDER + seed, made.coordinates()),
    "coordinates without order": lambda made, model, seed: made.forecast(model, None, made.coordinates()),  # noqa: ARG005
    "kernel": lambda made, model, seed: made.forecast(model, ORDER + seed, made.kernel()),
    DEFAULT: lambda made, model, seed: made.forecast(model, ORDER + seed, None),
}
#: Forecasts that are made of every seed, as the training itself is; the others of the first few.
EVERY_SEED = ("trained", "twins", "one twin")


def task_runs(
    numbers: Iterable[int], sizes: Sizes, seeds: int, few: int, keep: Keep, without: tuple[str, ...] = ()
) -> Iterator[tuple[str, Trajectory]]:
    """Every run of these tasks with its name: the training and the twins from `seeds` seeds, the rest from `few`.

    Kinds named in `without` are left out. The kernel is for SGD only.
    """
    for number in numbers:
        made = Prepared(draw_route_task(number), sizes)
        kinds = [kind for kind in KINDS if kind not in without]
        if made.task.optimiser != "SGD" and "kernel" in kinds:
            kinds.remove("kernel")
        for seed in range(seeds):
            for kind in kinds if seed < few else EVERY_SEED:
                name = run_name(made.task, seed, kind)
                yield name, keep(name, partial(made, kind, seed))


def run_name(task: RouteTask, seed: int, kind: str) -> str:
    """How a run is called among those of an experiment."""
    return f"{task.name}, seed {seed}, {kind}"


def seconds(run: Trajectory) -> float:
    """The processor time that this run took."""
    found: Any = run.origin.settings.get("cpu_seconds", float("nan"))
    return float(found)


def _spent(found: Trajectory, time_spent: float) -> Trajectory:
    origin = replace(found.origin, settings={**found.origin.settings, "cpu_seconds": time_spent})
    return Trajectory(dict(found), found.clock, origin, found.diverged, points=found.points)
