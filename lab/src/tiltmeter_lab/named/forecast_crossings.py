"""How well each method tells the time of crossings, on tasks chosen because another training of them has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.clustered import clustered, clustered_share
from tiltmeter_lab.shared.crossings_told import CROSSINGS, above_pilot, beside_pilot, crossings_told
from tiltmeter_lab.shared.route_rows import FORETOLD, Row, ScoredRuns, rows
from tiltmeter_lab.shared.route_runs import Prepared, Sizes, task_runs
from tiltmeter_lab.shared.route_scores import truths
from tiltmeter_lab.shared.route_tasks import CROSSING, draw_route_task

TITLE = "The times of crossings, predicted before training"
PAPER = "tiltmeter's own claim, see docs/forecast.md"
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
    sizes=Sizes(steps=400, deep_steps=150, held_out=1000, per_decade=12),
)


def run(setting: Setting, keep: Keep) -> Runs:
    """One training of each candidate chooses the tasks; then, from other seeds, trainings and forecasts of these."""
    scouts: dict[str, tm.Trajectory] = {}
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
    made = task_runs(chosen, setting.sizes, setting.seeds, setting.seeds, keep)
    return ScoredRuns({**scouts, **dict(made)})


def claims(runs: Runs) -> tuple[Claim, ...]:
    """At least four of five crossings within a factor 1.25, and more than the first 5 % of the training tells."""
    every = rows(runs)
    seeds = len({row.run.rpartition(" ")[2] for row in every}) or 1  # the scout's
    scouts = [name for name in runs if name.endswith(", scout")]
    chosen = len({row.task.number for row in every})
    return (
        *(_told(every, kind, len(scouts), chosen, seeds) for kind in ("rehearsals", "twin")),
        *(
            Claim(
                f"The time of crossings is predicted better by {kind} than by the first 5 % of the training",
                above_pilot(every, kind)[0],
                "share of crossings within a factor 1.25, less that of the first 5 %",
                0.0,
                beside_pilot(every, kind),
                error=above_pilot(every, kind)[1], seeds=seeds, freedom=max(1, chosen - 1), safe=False
            )
            for kind in ("rehearsals", "twin")
        ),
    )  # fmt: skip


def _told(every: Sequence[Row], kind: str, scouts: int, chosen: int, seeds: int) -> Claim:
    hits, tasks = crossings_told(every, kind)
    enough = len(hits) >= CROSSINGS
    share, trials = clustered_share(hits, tasks) if enough else (float("nan"), None)
    few = "" if enough else f" {sum(hits)} of {len(hits)}; {CROSSINGS} are needed for a verdict."
    return Claim(
        f"Crossings are predicted by {'a twin' if kind == 'twin' else kind}",
        share,
        f"share of {len(hits)} crossings shown after step 10 predicted within a factor 1.25",
        0.8,
        f"{chosen} tasks, the first of {scouts} whose scout, a training from another seed, shows a crossing.{few}",
        trials=trials,
        seeds=seeds,
        safe=False,
    )


def tables(runs: Runs) -> Mapping[str, tm.results.page.Table]:
    """What tells how many of the crossings."""
    every = rows(runs)
    lines: list[tuple[str, ...]] = []
    for kind in FORETOLD:
        hits, tasks = crossings_told(every, kind)
        if hits:
            share, error = clustered(hits, tasks, np.mean)
            lines.append(
                (kind, f"{sum(hits)} of {len(hits)}", f"{share:.2f}" + ("" if error is None else f" ± {error:.2f}"))
            )
    seen = [hit for row in every for hit in row.pilot]
    lines.append(("5 % of the training", f"{sum(seen)} of {len(seen)}", f"{np.mean(seen):.2f}" if seen else ""))
    return {"Crossings told within a factor 1.25": tm.results.page.Table(("forecast", "crossings", "share"), lines)}


def pictures(runs: Runs) -> Mapping[str, Any]:
    """The first scout; then run and twin on one chart, for the first tasks."""
    scout = next(name for name in runs if name.endswith(", scout"))
    charts: dict[str, Any] = {f"Task {scout}": tm.plot.curves(runs[scout])}
    for name in [name for name in runs if name.endswith("seed 0, trained")][:3]:
        both = (runs[name], runs[name.replace("trained", "twin")])
        charts[f"Task {name}"] = tm.plot.curves(*both, labels=("trained", "twin"))
    return charts
