"""How well forecasts predict real training, on random tasks fixed in advance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tiltmeter import plot
from tiltmeter.analysis.over_seeds import share
from tiltmeter.data.grouped import GroupedData
from tiltmeter.experiments.catalogue import Keep, Runs
from tiltmeter.experiments.claim import Claim
from tiltmeter.experiments.shared.forecast_scores import Scored, median_error, score
from tiltmeter.experiments.shared.forecast_tasks import PEOPLE, PICTURES, Task, draw, of_people
from tiltmeter.forecast.route import Kernel
from tiltmeter.losses import Square
from tiltmeter.recipe import Recipe
from tiltmeter.record import Trajectory
from tiltmeter.report.page import Table

TITLE = "A forecast from the initial weights predicts who leads, when, and by how much"
PAPER = "tiltmeter's own claim, see docs/forecast.md"
NEEDS: tuple[str, ...] = ("mnist", "fashion-mnist", "cifar10", "adult", "compas")


@dataclass(frozen=True)
class Setting:
    """`tasks` of pictures are drawn, and more by the same rule until `crossings` are found, at most `most` in all."""

    tasks: int = 3
    people: tuple[str, ...] = ("compas",)
    seeds: int = 2
    steps: int = 400
    batch: int = 16
    sample: int = 1000
    look: int = 500
    crossings: int = 0
    most: int = 3


QUICK = Setting()
FULL = Setting(tasks=24, people=("adult", "compas"), seeds=3, steps=6000, sample=2500, look=1000, crossings=10, most=60)


def run(setting: Setting, keep: Keep) -> Runs:
    """For every task and seed, the forecast from the initial weights and the training from the same weights."""
    runs: dict[str, Trajectory] = {}
    number = found = 0
    tasks = [of_people(900 + i, name) for i, name in enumerate(setting.people)]
    while number < setting.tasks or (found < setting.crossings and number < setting.most):
        tasks.append(draw(number))
        while tasks:
            for name, one in _task(tasks.pop(0), setting, keep):
                runs[name] = one
                if name.endswith("trained"):
                    found += len(score(runs[name.replace("trained", "forecast")], one).foretold)
        number += 1
    return runs


def _task(task: Task, setting: Setting, keep: Keep) -> Iterator[tuple[str, Trajectory]]:
    made = Prepared(task, setting.look)
    for seed in range(setting.seeds):
        for kind in ("forecast", "trained"):
            name = f"{task.name}, seed {seed}, {kind}"
            yield name, keep(name, partial(getattr(made, kind), seed, setting))


class Prepared:
    """A task whose points are loaded when first needed: a resumed experiment may not need them."""

    def __init__(self, task: Task, look: int) -> None:
        self.task, self._look = task, look
        self._points: tuple[GroupedData, GroupedData] | None = None

    @property
    def points(self) -> tuple[GroupedData, GroupedData]:
        """What to train on and what to look at."""
        if self._points is None:
            self._points = self.task.points(self._look)
        return self._points

    def model(self, seed: int) -> Any:
        """The network of this seed, before training."""
        import torch

        torch.manual_seed(seed)
        return self.task.model(int(np.prod(self.points[0].x.shape[1:])))

    def forecast(self, seed: int, setting: Any, weights: Mapping[Any, float] | None = None) -> Trajectory:
        """Return the forecast for the network of this seed."""
        from tiltmeter.forecast.forecast import forecast

        return forecast(
            self.model(seed),
            *self.points,
            Recipe(lr=self.task.lr, steps=setting.steps, batch=setting.batch, weights=weights, loss=Square()),
            route=Kernel(sample=setting.sample),
        )

    def drawn(self, setting: Any, weights: Mapping[Any, float] | None) -> Recipe:
        """Plain SGD on points drawn at every step."""
        from tiltmeter.recipe.sampling import Draws

        lr, steps, batch = self.task.lr, setting.steps, setting.batch
        return Recipe(lr=lr, steps=steps, batch=batch, sampling=Draws(), weights=weights, loss=Square())

    def twins(self, seed: int, setting: Any, weights: Mapping[Any, float] | None = None) -> Trajectory:
        """Return the forecast by two thin twins on the batches of the training of this seed."""
        from tiltmeter.forecast.forecast import forecast
        from tiltmeter.forecast.route import Twin

        recipe = replace(self.drawn(setting, weights), order=seed)
        return forecast(self.model(seed), *self.points, recipe, route=Twin(), progress=False)

    def trained(
        self, seed: int, setting: Any, weights: Mapping[Any, float] | None = None, draws: int | None = None
    ) -> Trajectory:
        """Train it; `draws` is the seed of the points drawn, if it differs."""
        from tiltmeter.training.loop import train

        order = seed if draws is None else draws
        return train(self.model(seed), *self.points, self.drawn(setting, weights), seed=order)


def scores(runs: Runs) -> dict[str, Scored]:
    """Return the scores of every trained run against its forecast, by task and seed."""
    pairs = {name.removesuffix(", trained"): name for name in runs if name.endswith(", trained")}
    return {short: score(runs[f"{short}, forecast"], runs[name]) for short, name in pairs.items()}


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Return the three claims about forecasts, over all runs."""
    found = scores(runs)
    decided = [one.right for one in found.values() if one.right is not None]
    courses = np.array([one.correlation for one in found.values()])
    courses = courses[np.isfinite(courses)]
    passed = [hit for one in found.values() for hit in one.foretold]
    sets = sorted({_data(name) for name in found})
    each = ", ".join(f"{name} {_median([s for n, s in found.items() if _data(n) == name]):.3f}" for name in sets)
    whole = float(np.nanmedian([one.correlation_all for one in found.values()]))
    seeds = len({name.rpartition(" ")[2] for name in found})
    return (
        Claim(
            "The final leader is predicted",
            share(decided)[0],
            f"share right of {len(decided)} runs in which a final leader is shown",
            0.95,
            error=share(decided)[1],
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "The gap over time is predicted",
            float(np.median(courses)) if len(courses) else float("nan"),
            "median correlation of forecast and real gap before the horizon",
            0.95,
            f"By data set: {each}. Over all looks, beyond the horizon too: {whole:.3f}. "
            f"{len(found) - len(courses)} of {len(found)} runs have a horizon too early to tell.",
            error=median_error(courses),
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "Crossings are predicted",
            share(passed)[0],
            f"share of {len(passed)} crossings shown after step 10 forecast within a factor 1.5",
            0.8,
            "" if passed else "No crossing after step 10 was shown.",
            error=share(passed)[1],
            seeds=seeds,
            safe=False,
        ),
    )


def tables(runs: Runs) -> Mapping[str, Table]:
    """Every run in a row; none is left out."""
    header = ("task", "seed", "final gap", "forecast", "leader", "correlation", "all looks", "horizon", "crossings")
    rows = []
    for name, one in scores(runs).items():
        task, _, seed = name.rpartition(", seed ")
        right = {None: "undecided", True: "right", False: "wrong"}[one.right]
        rows.append(
            (
                _described(task),
                seed,
                f"{one.gap:+.4f} ± {one.gap_error:.4f}",
                f"{one.forecast_gap:+.4f}",
                right,
                f"{one.correlation:.3f}",
                f"{one.correlation_all:.3f}",
                "end" if one.horizon is None else f"{one.horizon:.0f}",
                f"{sum(one.foretold)} of {len(one.foretold)}" if one.foretold else "",
            )
        )
    return {"Every run and its forecast": Table(header, rows)}


def pictures(runs: Runs) -> Mapping[str, Any]:
    """Forecast and run on one chart, for the first three tasks of pictures."""
    charts: dict[str, Any] = {}
    for name in scores(runs):
        if name.endswith("seed 0") and _data(name) in PICTURES and len(charts) < 3:
            both = (runs[f"{name}, trained"], runs[f"{name}, forecast"])
            charts[f"Task {name}: trained and forecast"] = plot.curves(*both, labels=("trained", "forecast"))
    return charts


def _data(name: str) -> str:
    return name.split(",")[0].split(" ", 1)[1]


def _described(task: str) -> str:
    number, data = task.split(" ", 1)
    found = of_people(int(number), data) if data in PEOPLE else draw(int(number))
    return f"{number} {found}"


def _median(found: list[Scored]) -> float:
    return float(np.nanmedian([one.correlation for one in found]))
