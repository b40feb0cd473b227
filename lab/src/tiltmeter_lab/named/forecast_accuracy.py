"""How well forecasts predict real training, on random tasks fixed in advance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.forecast_scores import Scored, median_error, score
from tiltmeter_lab.shared.forecast_tasks import PEOPLE, PICTURES, Task, draw, of_people
from tiltmeter_lab.shared.over_seeds import share

TITLE = "A rehearsed training predicts who leads, when, and by how much"
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
    copies: int = 3
    held_out: int = 500
    crossings: int = 0
    most: int = 3


QUICK = Setting()
FULL = Setting(tasks=24, people=("adult", "compas"), seeds=3, steps=6000, held_out=1000, crossings=10, most=60)


def run(setting: Setting, keep: Keep) -> Runs:
    """For every task and seed, rehearsals from the initial weights and the training from the same weights."""
    runs: dict[str, tm.Trajectory] = {}
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


def _task(task: Task, setting: Setting, keep: Keep) -> Iterator[tuple[str, tm.Trajectory]]:
    made = Prepared(task, setting.held_out)
    for seed in range(setting.seeds):
        for kind in ("forecast", "trained"):
            name = f"{task.name}, seed {seed}, {kind}"
            yield name, keep(name, partial(getattr(made, kind), seed, setting))


class Prepared:
    """A task whose points are loaded when first needed: a resumed experiment may not need them."""

    def __init__(self, task: Task, held_out: int) -> None:
        self.task, self._held_out = task, held_out
        self._points: tuple[tm.GroupedData, tm.GroupedData] | None = None

    @property
    def points(self) -> tuple[tm.GroupedData, tm.GroupedData]:
        """What to train on and what to look at."""
        if self._points is None:
            self._points = self.task.points(self._held_out)
        return self._points

    def model(self, seed: int) -> Any:
        """The network of this seed, before training."""
        import torch

        torch.manual_seed(seed)
        return self.task.model(int(np.prod(self.points[0].x.shape[1:])))

    def forecast(self, seed: int, setting: Any, weights: Mapping[Any, float] | None = None) -> tm.Trajectory:
        """Return the forecast for the network of this seed, by rehearsals with other batches."""
        method = tm.methods.Rehearsal(copies=setting.copies)
        return tm.forecast(self.model(seed), *self.points, self.drawn(setting, weights), method=method, progress=False)

    def drawn(self, setting: Any, weights: Mapping[Any, float] | None) -> tm.Recipe:
        """Plain SGD on points drawn at every step."""

        lr, steps, batch = self.task.lr, setting.steps, setting.batch
        return tm.Recipe(
            lr=lr, steps=steps, batch=batch, sampling=tm.training.Draws(), weights=weights, loss=tm.Square()
        )

    def trained(
        self, seed: int, setting: Any, weights: Mapping[Any, float] | None = None, draws: int | None = None
    ) -> tm.Trajectory:
        """Train it; `draws` is the seed of the points drawn, if it differs."""

        order = seed if draws is None else draws
        return tm.train(self.model(seed), *self.points, self.drawn(setting, weights), seed=order)


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
    stated = [one.right for one in found.values() if one.stated and one.right is not None]
    seeds = len({name.rpartition(" ")[2] for name in found})
    return (
        Claim(
            "The final leader is predicted",
            share(decided)[0],
            f"share right of {len(decided)} runs in which a final leader is shown",
            0.95,
            f"Stated in {len(stated)} of them, {sum(stated)} rightly.",
            error=share(decided)[1],
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "The gap over time is predicted",
            float(np.median(courses)) if len(courses) else float("nan"),
            "median correlation of forecast and real gap over all evaluations",
            0.95,
            f"By data set: {each}.",
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


def tables(runs: Runs) -> Mapping[str, tm.results.page.Table]:
    """Every run in a row; none is left out."""
    header = (
        "task",
        "seed",
        "final gap",
        "forecast",
        "leader",
        "stated",
        "correlation",
        "crossings",
    )
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
                "yes" if one.stated else "no",
                f"{one.correlation:.3f}",
                f"{sum(one.foretold)} of {len(one.foretold)}" if one.foretold else "",
            )
        )
    return {"Every run and its forecast": tm.results.page.Table(header, rows)}


def pictures(runs: Runs) -> Mapping[str, Any]:
    """Forecast and run on one chart, for the first three tasks of pictures."""
    charts: dict[str, Any] = {}
    for name in scores(runs):
        if name.endswith("seed 0") and _data(name) in PICTURES and len(charts) < 3:
            both = (runs[f"{name}, trained"], runs[f"{name}, forecast"])
            charts[f"Task {name}: trained and forecast"] = tm.plot.curves(*both, labels=("trained", "forecast"))
    return charts


def _data(name: str) -> str:
    return name.split(",")[0].split(" ", 1)[1]


def _described(task: str) -> str:
    number, data = task.split(" ", 1)
    found = of_people(int(number), data) if data in PEOPLE else draw(int(number))
    return f"{number} {found}"


def _median(found: list[Scored]) -> float:
    return float(np.nanmedian([one.correlation for one in found]))
