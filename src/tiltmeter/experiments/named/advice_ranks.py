"""Interventions ranked before training by narrow twins, and as they rank after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tiltmeter.advice.advice import PLAIN
from tiltmeter.advice.menu import menu
from tiltmeter.analysis.over_seeds import share
from tiltmeter.experiments.catalogue import Keep, Runs
from tiltmeter.experiments.claim import Claim
from tiltmeter.experiments.shared.cure_tasks import CureTask, drawn
from tiltmeter.experiments.shared.forecast_scores import median_error
from tiltmeter.forecast.route import Twin
from tiltmeter.plot.labelled_points import labelled_points
from tiltmeter.population.criteria import WorstGroupArea
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory, log_spaced
from tiltmeter.report.page import Table

TITLE = "Twins rank interventions before training as training ranks them"
PAPER = "tiltmeter's own claim, see docs/advice.md"
NEEDS: tuple[str, ...] = ("fashion-mnist", "adult")  # a literal: the list of experiments reads it without importing


@dataclass(frozen=True)
class Setting:
    """The first `tasks` of those drawn by `cure_tasks.drawn`; `twins` of a share of the width for every forecast."""

    tasks: int = 3
    steps: int = 300
    points: int = 1000
    look: int = 1000
    twins: int = 2
    seeds: int = 1


QUICK = Setting()
FULL = Setting(tasks=9, steps=1000, points=3000, look=2000)


def run(setting: Setting, keep: Keep) -> Runs:
    """For every task and law of the menu, the forecast by twins and the training; batches of all are drawn alike."""
    runs: dict[str, Trajectory] = {}
    for task in drawn(setting.tasks):
        for law in (PLAIN, *menu(setting.steps)):
            for kind, make in (("forecast", _forecast), ("trained", _trained)):
                name = f"{task.name}, {law}, {kind}"
                runs[name] = keep(name, partial(make, task, law, setting))
    return runs


def _recipe(task: CureTask, law: str, setting: Setting) -> Recipe:
    plain = task.recipe(setting.steps)
    return plain if law == PLAIN else replace(plain, interventions=(menu(setting.steps)[law],))


def _forecast(task: CureTask, law: str, setting: Setting) -> Trajectory:
    from tiltmeter.forecast.forecast import forecast

    train, look = task.data(setting.points, setting.look)
    recipe, watch = _recipe(task, law, setting), Watch(when=log_spaced(8))
    model = task.model(train.x.shape[1], seed=0)
    return forecast(model, train, look, recipe, watch=watch, route=Twin(count=setting.twins), progress=False)


def _trained(task: CureTask, law: str, setting: Setting) -> Trajectory:
    from tiltmeter.training.loop import train as train_now

    train, look = task.data(setting.points, setting.look)
    recipe, watch = _recipe(task, law, setting), Watch(when=log_spaced(8))
    return train_now(task.model(train.x.shape[1], seed=0), train, look, recipe, watch=watch)


@dataclass(frozen=True)
class Ranked:
    """One task: areas of the worst group over training by law, as forecast and as trained."""

    task: str
    forecast: Mapping[str, float]
    trained: Mapping[str, float]

    @property
    def correlation(self) -> float:
        """Spearman's rank correlation over laws, plain training included."""
        from scipy.stats import spearmanr

        names = list(self.trained)
        return float(spearmanr([self.forecast[n] for n in names], [self.trained[n] for n in names]).statistic)

    @property
    def place(self) -> int:
        """Where the law that is forecast to be best ends up."""
        first = min(self.forecast, key=self.forecast.__getitem__)
        return 1 + sorted(self.trained, key=self.trained.__getitem__).index(first)


def ranked(runs: Runs) -> list[Ranked]:
    """Every task of the runs."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, one in runs.items():
        task, law, kind = name.rsplit(", ", 2)
        value = float(WorstGroupArea().of(one).mean())
        found.setdefault(task, {"forecast": {}, "trained": {}})[kind][law] = value if np.isfinite(value) else np.inf
    return [Ranked(task, both["forecast"], both["trained"]) for task, both in found.items()]


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Whether ranks agree, and whether the first choice is a good one."""
    tasks = ranked(runs)
    correlations = np.array([task.correlation for task in tasks])
    among = [task.place <= 3 for task in tasks]
    helped = [min(t.forecast, key=t.forecast.__getitem__) for t in tasks]
    gain = [1.0 - t.trained[first] / t.trained[PLAIN] for t, first in zip(tasks, helped, strict=True)]
    count = len(tasks[0].trained)
    return (
        Claim(
            "Twins rank interventions as training does",
            float(np.median(correlations)),
            f"median rank correlation of the worst group's loss over training, {count} laws, {len(tasks)} tasks",
            0.7,
            f"From {correlations.min():.2f} to {correlations.max():.2f} over tasks.",
            error=median_error(correlations),
            seeds=1,
            safe=False,
        ),
        Claim(
            "The first choice of the forecast is among the best three",
            share(among)[0],
            f"share of {len(tasks)} tasks",
            0.9,
            "Places: "
            + ", ".join(str(task.place) for task in tasks)
            + f" of {count}. It lowers the worst group's loss "
            f"over training by {np.mean(gain):.0%} on average.",
            error=share(among)[1],
            seeds=1,
            safe=False,
        ),
    )


def tables(runs: Runs) -> Mapping[str, Table]:
    """The worst group's loss over training, forecast and trained, by law and task."""
    tasks = ranked(runs)
    names = list(tasks[0].trained)
    rows = [(law, *(f"{t.forecast[law]:.3f} / {t.trained[law]:.3f}" for t in tasks)) for law in names]
    rows.append(("rank correlation", *(f"{t.correlation:.2f}" for t in tasks)))
    return {"Worst group's loss over training, forecast / trained": Table(("law", *(t.task for t in tasks)), rows)}


def pictures(runs: Runs) -> Mapping[str, Any]:
    """Forecast against trained, one mark per law, one colour per task."""
    marks = [
        (task.task, law, task.forecast[law] / task.forecast[PLAIN], task.trained[law] / task.trained[PLAIN])
        for task in ranked(runs)
        for law in task.trained
    ]
    titles = ("forecast, relative to plain", "trained, relative to plain")
    return {"Worst group's loss over training": labelled_points(marks, *titles)}
