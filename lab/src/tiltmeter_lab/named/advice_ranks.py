"""Interventions ranked before training by narrow twins, and as they rank after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.cure_tasks import CureTask, drawn
from tiltmeter_lab.shared.forecast_scores import median_error
from tiltmeter_lab.shared.over_seeds import share
from tiltmeter_lab.shared.pictures import labelled_points

PLAIN = "plain"

TITLE = "Twins rank interventions before training as training ranks them"
PAPER = "tiltmeter's own claim, see docs/advice.md"
NEEDS: tuple[str, ...] = ("fashion-mnist", "adult")  # a literal: the list of experiments reads it without importing


@dataclass(frozen=True)
class Setting:
    """The first `tasks` of those drawn by `cure_tasks.drawn`; `twins` of a share of the width for every forecast."""

    tasks: int = 3
    steps: int = 300
    points: int = 1000
    held_out: int = 1000
    twins: int = 2
    seeds: int = 1


QUICK = Setting()
FULL = Setting(tasks=9, steps=1000, points=3000, held_out=2000)


def run(setting: Setting, keep: Keep) -> Runs:
    """For every task and intervention of the menu, the forecast by twins and the training; batches of all are drawn
    alike."""
    runs: dict[str, tm.Trajectory] = {}
    for task in drawn(setting.tasks):
        for law in (PLAIN, *tm.interventions.menu(setting.steps)):
            for kind, make in (("forecast", _forecast), ("trained", _trained)):
                name = f"{task.name}, {law}, {kind}"
                runs[name] = keep(name, partial(make, task, law, setting))
    return runs


def _recipe(task: CureTask, law: str, setting: Setting) -> tm.Recipe:
    plain = task.recipe(setting.steps)
    return plain if law == PLAIN else replace(plain, interventions=(tm.interventions.menu(setting.steps)[law],))


def _forecast(task: CureTask, law: str, setting: Setting) -> tm.Trajectory:

    train, held_out = task.data(setting.points, setting.held_out)
    recipe, watch = _recipe(task, law, setting), tm.Watch(when=tm.record.log_spaced(8))
    model = task.model(train.x.shape[1], seed=0)
    return tm.forecast(
        model, train, held_out, recipe, watch=watch, method=tm.methods.Twin(count=setting.twins), progress=False
    )


def _trained(task: CureTask, law: str, setting: Setting) -> tm.Trajectory:

    train, held_out = task.data(setting.points, setting.held_out)
    recipe, watch = _recipe(task, law, setting), tm.Watch(when=tm.record.log_spaced(8))
    return tm.train(task.model(train.x.shape[1], seed=0), train, held_out, recipe, watch=watch)


@dataclass(frozen=True)
class Ranked:
    """One task: the worst group's loss at the end by intervention, as forecast and as trained."""

    task: str
    forecast: Mapping[str, float]
    trained: Mapping[str, float]

    @property
    def correlation(self) -> float:
        """Spearman's rank correlation over interventions, plain training included."""
        from scipy.stats import spearmanr

        names = list(self.trained)
        return float(spearmanr([self.forecast[n] for n in names], [self.trained[n] for n in names]).statistic)

    @property
    def place(self) -> int:
        """Where the intervention that is forecast to be best ends up."""
        first = min(self.forecast, key=self.forecast.__getitem__)
        return 1 + sorted(self.trained, key=self.trained.__getitem__).index(first)


def ranked(runs: Runs) -> list[Ranked]:
    """Every task of the runs."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, one in runs.items():
        task, law, kind = name.rsplit(", ", 2)
        value = float(tm.fairness.criteria.WorstGroupLoss().of(one).mean())
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
            f"median rank correlation of the worst group's final loss, {count} interventions, {len(tasks)} tasks",
            0.7,
            f"From {correlations.min():.2f} to {correlations.max():.2f} over tasks.",
            error=median_error(correlations),
            seeds=1,
            safe=False,
            neutral=0.0,
        ),
        Claim(
            "The first choice of the forecast is among the best three",
            share(among)[0],
            f"share of {len(tasks)} tasks",
            0.9,
            "Places: " + ", ".join(str(task.place) for task in tasks) + f" of {count}. It lowers the worst group's "
            f"final loss by {np.mean(gain):.0%} on average.",
            trials=len(among),
            safe=False,
        ),
    )


def tables(runs: Runs) -> Mapping[str, tm.results.page.Table]:
    """The worst group's final loss, forecast and trained, by intervention and task."""
    tasks = ranked(runs)
    names = list(tasks[0].trained)
    rows = [(law, *(f"{t.forecast[law]:.3f} / {t.trained[law]:.3f}" for t in tasks)) for law in names]
    rows.append(("rank correlation", *(f"{t.correlation:.2f}" for t in tasks)))
    return {
        "Worst group's final loss, forecast / trained": tm.results.page.Table(("law", *(t.task for t in tasks)), rows)
    }


def pictures(runs: Runs) -> Mapping[str, Any]:
    """Forecast against trained, one mark per intervention, one colour per task."""
    marks = [
        (task.task, law, task.forecast[law] / task.forecast[PLAIN], task.trained[law] / task.trained[PLAIN])
        for task in ranked(runs)
        for law in task.trained
    ]
    titles = ("forecast, relative to plain", "trained, relative to plain")
    return {"Worst group's final loss": labelled_points(marks, *titles)}
