"""How well each route of a forecast predicts real trainings, beside a second training and cheap guesses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tiltmeter import plot
from tiltmeter.experiments.catalogue import Keep, Runs
from tiltmeter.experiments.claim import Claim
from tiltmeter.experiments.shared.clustered import clustered
from tiltmeter.experiments.shared.crossings_told import CROSSINGS, above_pilot, beside_pilot, crossings_told
from tiltmeter.experiments.shared.route_rows import FORETOLD, Row, ScoredRuns, rows
from tiltmeter.experiments.shared.route_runs import DEFAULT, Sizes, seconds, task_runs
from tiltmeter.experiments.shared.route_tasks import JUDGED
from tiltmeter.report.page import Table

TITLE = "A forecast by twins or coordinates predicts a training with any optimiser"
PAPER = "tiltmeter's own claim, see docs/routes.md"
NEEDS: tuple[str, ...] = ("mnist", "fashion-mnist", "cifar10", "adult", "compas", "german")
#: Learning rates up to which coordinates are judged.
SLOW = 3e-4


@dataclass(frozen=True)
class Setting:
    """Numbers of `tasks` that judge; trainings and twins from `seeds` initial weights, the rest from `few`."""

    tasks: tuple[int, ...] = (103, 105)
    seeds: int = 1
    few: int = 1
    sizes: Sizes = Sizes()


QUICK = Setting()
FULL = Setting(
    tasks=tuple(JUDGED),
    seeds=5,
    few=2,
    sizes=Sizes(steps=400, deep_steps=150, look=300, per_decade=12, coordinates=2000, sample=600),
)


def run(setting: Setting, keep: Keep) -> Runs:
    """For every task and seed: the training, a second one, and the forecasts."""
    return ScoredRuns(task_runs(setting.tasks, setting.sizes, setting.seeds, setting.few, keep))


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The thresholds that were set before any task was drawn."""
    every = rows(runs)
    claim = partial(_claim, len({row.run.rpartition(" ")[2] for row in every}))
    return (*_of_twins(every, claim), *_of_coordinates(every, claim), *_of_costs(runs, every, claim))


def _claim(
    seeds: int,
    sentence: str,
    found: tuple[float, float | None],
    what: str,
    asked: float,
    where: str = "",
    most: bool = False,
) -> Claim:
    rule: Any = "at most" if most else "at least"
    return Claim(sentence, found[0], what, asked, where, rule, error=found[1], seeds=seeds, safe=False)


def _of_twins(every: list[Row], claim: Callable[..., Claim]) -> tuple[Claim, ...]:
    """Gap, level, leader and crossings by twins."""
    plain = [row for row in every if row.task.perceptron]
    deep = [row for row in every if not row.task.perceptron]
    leaders, passed = _leaders(every, "twins"), crossings_told(every, "twins")
    nearer = _nearer(plain)
    return (
        claim(
            "Two twins predict the gap of MLPs",
            _over_tasks(plain, "twins", "correlation"),
            f"median correlation of the gap, {len(plain)} pairs, the run's own order",
            0.98,
        ),
        claim(
            "Two twins predict it better than a second training",
            clustered(nearer, range(len(nearer)), np.mean),
            f"share of {len(nearer)} tasks of MLPs in which the gap of twins is nearer",
            0.75,
        ),
        claim(
            "Two twins predict the final loss of MLPs",
            _far(plain, "twins"),
            "median distance from 1 of the ratio of final losses",
            0.08,
            most=True,
        ),
        claim(
            "Twins of convolutions and attention are as good as a second training",
            _difference(deep, "twins", "trained again"),
            f"difference of median correlations, {_tasks(deep)} tasks",
            0.0,
            "" if deep else "A quarter of the drawn tasks has such networks; none of them is among these runs.",
        ),
        claim(
            "The final leader is predicted by twins",
            clustered(*leaders, np.mean),
            f"share right of {len(leaders[0])} pairs with a final leader shown",
            0.95,
            _others(every, _leaders),
        ),
        claim(
            "Crossings are predicted by twins",
            clustered(*passed, np.mean) if len(passed[0]) >= CROSSINGS else (float("nan"), None),
            f"share of {len(passed[0])} crossings shown after step 10 predicted within a factor 1.25",
            0.8,
            f"Twins {sum(passed[0])} of {len(passed[0])}, {_others(every, crossings_told).lower()}"
            + ("" if len(passed[0]) >= CROSSINGS else f" {CROSSINGS} are needed for a verdict."),
        ),
    )


def _of_coordinates(every: list[Row], claim: Callable[..., Claim]) -> tuple[Claim, ...]:
    """Coordinates at small rates, and every route beside the first 5 % of the training."""
    slow = [row for row in every if row.task.lr <= SLOW]
    return (
        claim(
            "Coordinates predict the gap at small learning rates",
            _difference(slow, "coordinates", "trained again"),
            f"median correlation less that of a second training, lr up to {SLOW:g}, {_tasks(slow)} tasks",
            -0.05,
        ),
        claim(
            "Coordinates predict the final loss at small learning rates",
            _far(slow, "coordinates"),
            "median distance from 1 of the ratio of final losses",
            0.15,
            most=True,
        ),
        *(
            claim(
                f"The time of crossings is predicted better by {kind} than by the first 5 % of the training",
                above_pilot(every, kind),
                "share of crossings within a factor 1.25, less that of the first 5 %",
                0.0,
                beside_pilot(every, kind),
            )
            for kind in ("twins", "coordinates", "kernel")
        ),
    )


def _of_costs(runs: Runs, every: list[Row], claim: Callable[..., Claim]) -> tuple[Claim, ...]:
    return (
        claim(
            "Forecasts by the default route cost at most 30 % of the trainings",
            (_sum_of_costs(runs, DEFAULT), None),
            "processor time of all forecasts over that of all trainings",
            0.3,
            most=True,
        ),
        claim(
            "A forecast by the default route costs at most half of a typical training",
            clustered(*_costs(every, DEFAULT)),
            "median of the processor time of a forecast over that of its training",
            0.5,
            most=True,
        ),
    )


def tables(runs: Runs) -> Mapping[str, Table]:
    """A summary of every route beside the ceiling and cheap guesses, by kind of network and optimiser; then tasks."""
    every = rows(runs)
    parts = {
        "all tasks": every,
        "MLPs": [row for row in every if row.task.perceptron],
        "convolutions and attention": [row for row in every if not row.task.perceptron],
        "SGD with momentum": [row for row in every if row.task.optimiser == "SGD"],
        "Adam and AdamW": [row for row in every if row.task.optimiser != "SGD"],
    }
    found = {
        f"Routes, ceiling and cheap guesses: {name}": _summary(some, runs)
        for name, some in parts.items()
        if some and (some is every or len(some) < len(every))
    }
    kinds = [kind for kind in FORETOLD if kind != DEFAULT]
    header = ("task", "pairs", *(f"{kind}: correlation" for kind in kinds), *(f"{kind}: final loss" for kind in kinds))
    each = []
    for task in dict.fromkeys(row.task for row in every):
        some = [row for row in every if row.task == task]
        numbers = [_text(_values(some, kind, name)[0]) for name in ("correlation", "level") for kind in kinds]
        each.append((task.name, str(len(some)), *numbers))
    return {**found, "Every task, medians over pairs and seeds": Table(header, each)}


def pictures(runs: Runs) -> Mapping[str, Any]:
    """Run and twins on one chart, for the first tasks."""
    charts: dict[str, Any] = {}
    for name in [name for name in runs if name.endswith("seed 0, trained")][:3]:
        both = (runs[name], runs[name.replace("trained", "twins")])
        charts[f"Task {name}"] = plot.curves(*both, labels=("trained", "twins"))
    return charts


def _summary(some: list[Row], runs: Runs) -> Table:
    """One line for everything that foretells, with standard errors over tasks."""
    head = ("forecast", "pairs", "leaders", "correlation", "least", "off / range", "final loss", "crossings", "cost")
    lines: list[tuple[str, ...]] = []
    chosen = {row.run for row in some}
    for kind in FORETOLD:
        courses, tasks = _values(some, kind, "correlation")
        if not len(courses):
            continue
        right, hits = _leaders(some, kind)[0], crossings_told(some, kind)[0]
        middle, error = clustered(courses, tasks)
        lines.append(
            (
                kind,
                str(len(courses)),
                f"{sum(right)} of {len(right)}",
                f"{middle:.3f}" + ("" if error is None else f" ± {error:.3f}"),
                f"{np.nanmin(courses):.2f}",
                _text(_values(some, kind, "off")[0]),
                _text(_values(some, kind, "level")[0]),
                f"{sum(hits)} of {len(hits)}",
                f"{np.median(_costs(some, kind)[0]):.2f} (sum {_sum_of_costs(runs, kind, chosen):.2f})",
            )
        )
    for guess in some[0].guesses:
        known = [row.guesses[guess] for row in some if row.guesses[guess] is not None]
        hits = [hit for row in some for hit in row.pilot] if guess.startswith("5 %") else []
        cells = (f"{sum(hits)} of {len(hits)}" if hits else "", "0.05" if hits else "0")
        lines.append((guess, str(len(some)), f"{sum(map(bool, known))} of {len(known)}", *[""] * 4, *cells))
    return Table(head, lines)


def _values(some: Sequence[Row], kind: str, name: str) -> tuple[list[float], list[int]]:
    """This number of every pair whose run has the kind, and the tasks."""
    found = [(getattr(row.scores[kind], name), row.task.number) for row in some if kind in row.scores]
    return [value for value, _ in found], [task for _, task in found]


def _leaders(some: Sequence[Row], kind: str) -> tuple[list[bool], list[int]]:
    values, tasks = _values(some, kind, "right")
    known = [(bool(value), task) for value, task in zip(values, tasks, strict=True) if value is not None]
    return [value for value, _ in known], [task for _, task in known]


def _others(every: Sequence[Row], ask: Any) -> str:
    """The same of everything else, in a sentence."""
    shares = {kind: ask(every, kind)[0] for kind in FORETOLD if kind not in ("twins", DEFAULT)}
    return ", ".join(f"{kind} {sum(hits)} of {len(hits)}" for kind, hits in shares.items()).capitalize() + "."


def _over_tasks(some: Sequence[Row], kind: str, name: str) -> tuple[float, float | None]:
    return clustered(*_values(some, kind, name))


def _difference(some: Sequence[Row], kind: str, other: str) -> tuple[float, float | None]:
    """The difference of median correlations, over the runs that have both."""
    both = [row for row in some if kind in row.scores and other in row.scores]
    pairs = [(row.scores[kind].correlation, row.scores[other].correlation) for row in both]
    tasks = [row.task.number for row in both]
    return clustered(pairs, tasks, lambda part: np.nanmedian(part[:, 0]) - np.nanmedian(part[:, 1]))


def _far(some: Sequence[Row], kind: str) -> tuple[float, float | None]:
    levels, tasks = _values(some, kind, "level")
    return clustered([abs(level - 1.0) for level in levels], tasks)


def _nearer(some: Sequence[Row]) -> list[bool]:
    """For every task, whether the gaps of twins are nearer than those of second trainings."""
    found = []
    for task in dict.fromkeys(row.task for row in some):
        own = [row.scores for row in some if row.task == task and "trained again" in row.scores]
        mine, other = (float(np.nanmean([one[kind].off for one in own])) for kind in ("twins", "trained again"))
        found.append(mine < other)
    return found


def _costs(some: Sequence[Row], kind: str) -> tuple[list[float], list[int]]:
    """Of every run once."""
    first = {row.run: row for row in some if kind in row.costs}
    return [row.costs[kind] for row in first.values()], [row.task.number for row in first.values()]


def _sum_of_costs(runs: Runs, kind: str, chosen: set[str] | None = None) -> float:
    """Over the runs that have this kind."""
    ends = f", {kind}"
    short = [name.removesuffix(ends) for name in runs if name.endswith(ends)]
    used = [name for name in short if chosen is None or name in chosen]
    trained = sum(seconds(runs[f"{name}, trained"]) for name in used)
    return sum(seconds(runs[name + ends]) for name in used) / trained if trained else float("nan")


def _tasks(some: Sequence[Row]) -> int:
    return len({row.task for row in some})


def _text(values: Sequence[float]) -> str:
    return f"{np.nanmedian(values):.3f}" if len(values) else ""
