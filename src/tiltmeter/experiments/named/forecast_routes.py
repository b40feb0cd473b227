"""How well each route of a forecast predicts real trainings, beside a second training and cheap guesses."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tiltmeter import plot
from tiltmeter.analysis.over_seeds import share
from tiltmeter.data.grouped import GroupedData
from tiltmeter.experiments.catalogue import Keep, Runs
from tiltmeter.experiments.claim import Claim
from tiltmeter.experiments.shared.forecast_scores import median_error
from tiltmeter.experiments.shared.route_scores import PairScore, baselines, pair_score, truths
from tiltmeter.experiments.shared.route_tasks import RouteTask, draw_route_task
from tiltmeter.record import Trajectory
from tiltmeter.record.labelled import label_from_json
from tiltmeter.report.page import Table

TITLE = "A forecast by twins or coordinates predicts a training with any optimiser"
PAPER = "tiltmeter's own claim, see docs/routes.md"
NEEDS: tuple[str, ...] = ("mnist", "fashion-mnist", "cifar10", "adult", "compas", "german")
#: The run itself has this order plus its seed; a second training that of another thousand.
ORDER, OTHER = 100, 1100
PERCEPTRONS = ("256", "1024", "1024-1024")


@dataclass(frozen=True)
class Setting:
    """`tasks` are drawn by number, each from `seeds` initial weights; `coordinates` weights are sampled."""

    tasks: int = 2
    seeds: int = 1
    steps: int = 60
    look: int = 200
    coordinates: int = 1000


QUICK = Setting()
FULL = Setting(tasks=24, seeds=3, steps=1000, look=1000, coordinates=4000)


def run(setting: Setting, keep: Keep) -> Runs:
    """For every task and seed: the training, a second one, and the forecasts."""
    runs: dict[str, Trajectory] = {}
    for number in range(setting.tasks):
        made = _Prepared(draw_route_task(number), setting)
        for seed in range(setting.seeds):
            for kind in KINDS:
                name = f"{made.task.name}, seed {seed}, {kind}"
                runs[name] = keep(name, partial(made, kind, seed))
    return runs


class _Prepared:
    """A task whose points are loaded when first needed."""

    def __init__(self, task: RouteTask, setting: Setting) -> None:
        self.task, self.setting = task, setting
        self._points: tuple[GroupedData, GroupedData] | None = None

    def __call__(self, kind: str, seed: int) -> Trajectory:
        """One run; the processor time that it took is noted in its Origin."""
        import torch

        if self._points is None:
            self._points = self.task.points(self.setting.look)
        torch.manual_seed(seed)
        model = self.task.model(int(np.prod(self._points[0].x.shape[1:])))
        began = time.process_time()
        found = KINDS[kind](self, model, seed)
        settings = {**found.origin.settings, "cpu_seconds": time.process_time() - began}
        origin = replace(found.origin, settings=settings)
        return Trajectory(dict(found), found.clock, origin, found.diverged, points=found.points)

    def train(self, model: Any, order: int) -> Trajectory:
        from tiltmeter.training.loop import train

        assert self._points is not None
        return train(model, *self._points, self.task.recipe(self.setting.steps, order), seed=order)

    def forecast(self, model: Any, order: int | None, route: Any) -> Trajectory:
        from tiltmeter.forecast.forecast import forecast

        assert self._points is not None
        return forecast(model, *self._points, self.task.recipe(self.setting.steps, order), route=route, progress=False)

    def twin(self, count: int) -> Any:
        from tiltmeter.forecast.route import Twin

        return Twin(share=1 / 8 if self.task.network in PERCEPTRONS else 1 / 4, count=count)

    def coordinates(self) -> Any:
        from tiltmeter.forecast.route import Coordinates

        return Coordinates(self.setting.coordinates)


KINDS: dict[str, Callable[[_Prepared, Any, int], Trajectory]] = {
    "trained": lambda made, model, seed: made.train(model, ORDER + seed),
    "trained again": lambda made, model, seed: made.train(model, OTHER + seed),
    "twins": lambda made, model, seed: made.forecast(model, ORDER + seed, made.twin(2)),
    "twins without order": lambda made, model, seed: made.forecast(model, None, made.twin(3)),  # noqa: ARG005
    "coordinates": lambda made, model, seed: made.forecast(model, ORDER + seed, made.coordinates()),
}
FORECASTS = tuple(kind for kind in KINDS if kind != "trained")


@dataclass(frozen=True)
class Row:
    """One pair of groups in one run: the score of every forecast, of every cheap guess, and costs over the training."""

    run: str
    network: str
    lr: float
    scores: dict[str, PairScore]
    guesses: dict[str, bool | None]
    costs: dict[str, float]


def rows(runs: Runs) -> list[Row]:
    """Every pair of every run; none is left out."""
    found = []
    for name in [name for name in runs if name.endswith(", trained")]:
        short, real = name.removesuffix(", trained"), runs[name]
        task = draw_route_task(int(short.split()[0]))
        given: Any = real.origin.settings["train"]
        sizes = {label_from_json(label): size for label, size in given["sizes"]}
        rates = {label_from_json(label): dict(pairs) for label, pairs in given["label_rates"]}
        spent = {kind: _seconds(runs[f"{short}, {kind}"]) / max(_seconds(real), 1e-9) for kind in FORECASTS}
        for truth in truths(real):
            scores = {kind: pair_score(runs[f"{short}, {kind}"], real, truth) for kind in FORECASTS}
            found.append(Row(short, task.network, task.lr, scores, baselines(sizes, rates, truth), spent))
    return found


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The bars that were set before any task was drawn."""
    every = rows(runs)
    plain = [row for row in every if row.network in PERCEPTRONS]
    deep = [row for row in every if row.network not in PERCEPTRONS]
    slow = [row for row in every if row.lr <= 3e-4]
    seeds = len({row.run.rpartition(" ")[2] for row in every})
    ahead = [_ahead(rows_of) for rows_of in _by_run(plain)]
    leaders = [row.scores["twins"].right for row in every if row.scores["twins"].right is not None]
    passed = [hit for row in every for hit in row.scores["twins"].told]
    again = [hit for row in every for hit in row.scores["trained again"].told]
    told = [hit for row in every for hit in row.scores["coordinates"].told]
    return (
        _median(
            "Two twins tell the gap of MLPs",
            "median correlation of the gap, the run's own order",
            plain,
            "twins",
            0.98,
            seeds,
        ),
        Claim(
            "Two twins tell it better than a second training",
            share(ahead)[0],
            f"share of {len(ahead)} runs of MLPs in which the gap of twins is nearer",
            0.75,
            error=share(ahead)[1],
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "Two twins tell the final loss of MLPs",
            _far(plain, "twins"),
            "median distance of the final loss from 1, as a ratio",
            0.08,
            rule="at most",
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "Twins of convolutions and attention are as good as a second training",
            _correlation(deep, "twins") - _correlation(deep, "trained again"),
            "difference of median correlations",
            0.0,
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "The final leader is told by twins",
            share(leaders)[0],
            f"share right of {len(leaders)} pairs with a final leader shown",
            0.95,
            error=share(leaders)[1],
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "Crossings are told by twins",
            share(passed)[0],
            f"share of {len(passed)} crossings shown after step 10 told within a factor 1.25",
            0.8,
            f"A second training tells {share(again)[0]:.2f}, coordinates {share(told)[0]:.2f}."
            + ("" if len(passed) >= 20 else " Fewer than the twenty asked for."),
            error=share(passed)[1],
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "Coordinates tell the gap at small learning rates",
            _correlation(slow, "coordinates") - _correlation(slow, "trained again"),
            f"median correlation less that of a second training, lr up to 3e-4, {len(slow)} pairs",
            -0.05,
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "Coordinates tell the final loss at small learning rates",
            _far(slow, "coordinates"),
            "median distance of the final loss from 1, as a ratio",
            0.15,
            rule="at most",
            seeds=seeds,
            safe=False,
        ),
    )


def tables(runs: Runs) -> Mapping[str, Table]:
    """A summary of every route beside the ceiling and cheap guesses; then every pair of every run."""
    every = rows(runs)
    head = ("forecast", "pairs", "leaders", "correlation", "least", "off / range", "final loss", "crossings", "cost")
    summary: list[tuple[str, ...]] = []
    for kind in FORECASTS:
        scores = [row.scores[kind] for row in every]
        right = [one.right for one in scores if one.right is not None]
        hits = [hit for one in scores for hit in one.told]
        courses = np.asarray([one.correlation for one in scores])
        costs = np.asarray([some[0].costs[kind] for some in _by_run(every)])
        summary.append(
            (
                kind,
                str(len(scores)),
                f"{sum(right)} of {len(right)}",
                f"{np.nanmedian(courses):.3f}",
                f"{np.nanmin(courses):.2f}",
                f"{np.nanmedian([one.off for one in scores]):.3f}",
                f"{np.nanmedian([one.level for one in scores]):.3f}",
                f"{sum(hits)} of {len(hits)}",
                f"{np.median(costs):.2f} (sum {_sum_of_costs(runs, kind):.2f})",
            )
        )
    for guess in every[0].guesses if every else ():
        known = [row.guesses[guess] for row in every if row.guesses[guess] is not None]
        summary.append((guess, str(len(every)), f"{sum(map(bool, known))} of {len(known)}", *[""] * 6))
    each = [
        (
            row.run,
            *(f"{row.scores[kind].correlation:.3f}" for kind in FORECASTS),
            *(f"{row.scores[kind].level:.2f}" for kind in FORECASTS),
        )
        for row in every
    ]
    header = ("run", *(f"{kind}: correlation" for kind in FORECASTS), *(f"{kind}: final loss" for kind in FORECASTS))
    return {"Routes, ceiling and cheap guesses": Table(head, summary), "Every pair": Table(header, each)}


def pictures(runs: Runs) -> Mapping[str, Any]:
    """Run and twins on one chart, for the first tasks."""
    charts: dict[str, Any] = {}
    for name in [name for name in runs if name.endswith("seed 0, trained")][:3]:
        both = (runs[name], runs[name.replace("trained", "twins")])
        charts[f"Task {name}"] = plot.curves(*both, labels=("trained", "twins"))
    return charts


def _seconds(run: Trajectory) -> float:
    found: Any = run.origin.settings.get("cpu_seconds", float("nan"))
    return float(found)


def _sum_of_costs(runs: Runs, kind: str) -> float:
    spent = sum(_seconds(run) for name, run in runs.items() if name.endswith(f", {kind}"))
    return spent / sum(_seconds(run) for name, run in runs.items() if name.endswith(", trained"))


def _by_run(every: list[Row]) -> list[list[Row]]:
    return [[row for row in every if row.run == name] for name in dict.fromkeys(row.run for row in every)]


def _ahead(some: list[Row]) -> bool:
    """Whether the gaps of one run are nearer in the twins than in a second training."""
    mine, other = (float(np.nanmean([row.scores[kind].off for row in some])) for kind in ("twins", "trained again"))
    return mine < other


def _correlation(some: list[Row], kind: str) -> float:
    found = [row.scores[kind].correlation for row in some]
    return float(np.nanmedian(found)) if found else float("nan")


def _far(some: list[Row], kind: str) -> float:
    found = [abs(row.scores[kind].level - 1.0) for row in some]
    return float(np.nanmedian(found)) if found else float("nan")


def _median(sentence: str, what: str, some: list[Row], kind: str, bar: float, seeds: int) -> Claim:
    values = np.asarray([row.scores[kind].correlation for row in some])
    values = values[np.isfinite(values)]
    middle = float(np.median(values)) if len(values) else float("nan")
    return Claim(sentence, middle, what, bar, error=median_error(values), seeds=seeds, safe=False)
