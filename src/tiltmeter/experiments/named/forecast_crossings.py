"""How well each route tells the time of crossings, on tasks chosen because another training of them has one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tiltmeter import plot
from tiltmeter.experiments.catalogue import Keep, Runs
from tiltmeter.experiments.claim import Claim
from tiltmeter.experiments.shared.clustered import clustered
from tiltmeter.experiments.shared.crossings_told import CROSSINGS, above_pilot, beside_pilot, crossings_told
from tiltmeter.experiments.shared.route_rows import FORETOLD, ScoredRuns, rows
from tiltmeter.experiments.shared.route_runs import DEFAULT, Prepared, Sizes, task_runs
from tiltmeter.experiments.shared.route_scores import truths
from tiltmeter.experiments.shared.route_tasks import CROSSING, draw_route_task
from tiltmeter.record import Trajectory
from tiltmeter.report.page import Table

TITLE = "The times of crossings, predicted before training"
PAPER = "tiltmeter's own claim, see docs/routes.md"
NEEDS: tuple[str, ...] = ("mnist", "fashion-mnist", "cifar10", "adult", "compas", "german")
#: The seed of the trainings that choose tasks. No forecast is compared with them.
SCOUT = 50
#: Networks of one hidden layer: the others take ten times as long.
NETWORKS = ("256", "1024")


@dataclass(frozen=True)
class Setting:
    """The first `tasks` of the candidates `among` whose scout shows a crossing, and trainings from `seeds` seeds."""

    among: tuple[int, ...] = tuple(CROSSING)[:12]
    tasks: int = 2
    seeds: int = 1
    sizes: Sizes = Sizes(steps=200)


QUICK = Setting()
FULL = Setting(
    among=tuple(CROSSING),
    tasks=16,
    seeds=3,
    sizes=Sizes(steps=400, deep_steps=150, look=1000, per_decade=12, coordinates=2000, sample=600),
)


def run(setting: Setting, keep: Keep) -> Runs:
    """One training of each candidate chooses the tasks; then, from other seeds, trainings and forecasts of these."""
    scouts: dict[str, Trajectory] = {}
    chosen: list[int] = []
    for number in setting.among:
        task = draw_route_task(number)
        if task.network not in NETWORKS:
            continue
        if len(chosen) == setting.tasks:
            break
        name = f"{task.name}, scout"
        scouts[name] = keep(name, partial(Prepared(task, setting.sizes), "trained", SCOUT))
        if any(truth.crossings for truth in truths(scouts[name])):
            chosen.append(number)
    made = task_runs(chosen, setting.sizes, setting.seeds, setting.seeds, keep, without=(DEFAULT,))
    return ScoredRuns({**scouts, **dict(made)})


def claims(runs: Runs) -> tuple[Claim, ...]:
    """At least four of five crossings within a factor 1.25, and more than the first 5 % of the training tells."""
    every = rows(runs)
    seeds = len({row.run.rpartition(" ")[2] for row in every}) or 1  # the scout's
    hits, tasks = crossings_told(every, "twins")
    enough = len(hits) >= CROSSINGS
    found, error = clustered(hits, tasks, np.mean) if enough else (float("nan"), None)
    scouts = [name for name in runs if name.endswith(", scout")]
    chosen = len({row.task.number for row in every})
    return (
        Claim(
            "Crossings are predicted by twins",
            found,
            f"share of {len(hits)} crossings shown after step 10 predicted within a factor 1.25",
            0.8,
            f"{chosen} tasks, the first of {len(scouts)} whose scout, a training from another seed, shows a crossing."
            + ("" if enough else f" Twins {sum(hits)} of {len(hits)}; {CROSSINGS} are needed for a verdict."),
            error=error, seeds=seeds, safe=False
        ),
        *(
            Claim(
                f"The time of crossings is predicted better by {kind} than by the first 5 % of the training",
                above_pilot(every, kind)[0],
                "share of crossings within a factor 1.25, less that of the first 5 %",
                0.0,
                beside_pilot(every, kind),
                error=above_pilot(every, kind)[1], seeds=seeds, safe=False
            )
            for kind in ("twins", "coordinates", "kernel")
        ),
    )  # fmt: skip


def tables(runs: Runs) -> Mapping[str, Table]:
    """What tells how many of the crossings."""
    every = rows(runs)
    lines: list[tuple[str, ...]] = []
    for kind in (kind for kind in FORETOLD if kind != DEFAULT):
        hits, tasks = crossings_told(every, kind)
        if hits:
            share, error = clustered(hits, tasks, np.mean)
            lines.append(
                (kind, f"{sum(hits)} of {len(hits)}", f"{share:.2f}" + ("" if error is None else f" ± {error:.2f}"))
            )
    seen = [hit for row in every for hit in row.pilot]
    lines.append(("5 % of the training", f"{sum(seen)} of {len(seen)}", f"{np.mean(seen):.2f}" if seen else ""))
    return {"Crossings told within a factor 1.25": Table(("forecast", "crossings", "share"), lines)}


def pictures(runs: Runs) -> Mapping[str, Any]:
    """The first scout; then run and twins on one chart, for the first tasks."""
    scout = next(name for name in runs if name.endswith(", scout"))
    charts: dict[str, Any] = {f"Task {scout}": plot.curves(runs[scout])}
    for name in [name for name in runs if name.endswith("seed 0, trained")][:3]:
        both = (runs[name], runs[name.replace("trained", "twins")])
        charts[f"Task {name}"] = plot.curves(*both, labels=("trained", "twins"))
    return charts
