"""Whether the bands that the package ships hold on tasks that neither calibrated them nor judged them before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tiltmeter import plot
from tiltmeter.experiments.catalogue import Keep, Runs
from tiltmeter.experiments.claim import Claim
from tiltmeter.experiments.shared.band_promise import leaders_named, promise, table_line
from tiltmeter.experiments.shared.band_scores import BandScore, band_scores
from tiltmeter.experiments.shared.route_rows import ScoredRuns
from tiltmeter.experiments.shared.route_runs import DEFAULT, Sizes, task_runs
from tiltmeter.experiments.shared.route_tasks import FURTHER, perceptrons
from tiltmeter.forecast.bands.kind import Kind
from tiltmeter.forecast.bands.shipped_scores import CURVES, shipped_scores
from tiltmeter.report.page import Table

TITLE = "The bands of forecasts hold nine of ten whole trainings of 24 further tasks"
PAPER = "tiltmeter's own claim, see docs/forecast.md"
NEEDS: tuple[str, ...] = ("mnist", "fashion-mnist", "cifar10", "adult", "compas", "german")
#: The forecasts that are judged: one and two twins of every training, the kernel of those with SGD.
JUDGED: tuple[Kind, ...] = ("twins", "one twin", "kernel")


@dataclass(frozen=True)
class Setting:
    """Numbers of `tasks`; trainings and twins from `seeds` initial weights, kernels from `few`."""

    tasks: tuple[int, ...] = (301, 303)
    seeds: int = 1
    few: int = 1
    sizes: Sizes = Sizes()


QUICK = Setting()
FULL = Setting(
    tasks=perceptrons(FURTHER)[:24],
    seeds=5,
    few=2,
    sizes=Sizes(steps=400, deep_steps=150, look=300, per_decade=12, sample=600),
)


def run(setting: Setting, keep: Keep) -> Runs:
    """For every task and seed: the training and its forecast by twins; by the kernel from the first seeds."""
    without = ("trained again", DEFAULT, "coordinates", "twins without order", "coordinates without order")
    return ScoredRuns(task_runs(setting.tasks, setting.sizes, setting.seeds, setting.few, keep, without))


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Is .90 inside the interval of the share of trainings that the bands hold?"""
    made, found = shipped_scores()["scores"], band_scores(runs)
    seeds = len({name.split(", ")[1] for name in runs})
    return tuple(
        promise(kind, what, words, made, found, seeds)
        for kind in JUDGED
        for what, words in (("gap", "gaps between groups"), ("level", "losses of groups"))
    )


def tables(runs: Runs) -> Mapping[str, Table]:
    """Coverage and width by curve, and of gaps in the loss by optimiser."""
    made, found = shipped_scores()["scores"], band_scores(runs)
    head = ("band", "of", "factor", "runs", "inside", "95 % interval", "half width / movement")
    curves = [table_line(made, found, k, c, w, f"{c}, {w}") for k in JUDGED for c in CURVES for w in ("gap", "level")]
    parts: dict[str, Callable[[BandScore], bool]] = {
        "SGD": lambda one: one.task.optimiser == "SGD",
        "Adam and AdamW": lambda one: one.task.optimiser != "SGD",
    }
    split = [
        table_line(made, [one for one in found if belongs(one)], "twins", "loss", what, f"{name}, {what}")
        for name, belongs in parts.items()
        for what in ("gap", "level")
    ]
    return {
        "Coverage of whole curves": Table(head, [line for line in curves if line is not None]),
        "Losses, by optimiser": Table(head, [line for line in split if line is not None]),
        "Who leads at the end, by the band": leaders_named(runs, made, JUDGED),
    }


def pictures(runs: Runs) -> Mapping[str, Any]:
    """Runs and the band of their twins, for the first tasks."""
    charts: dict[str, Any] = {}
    for name in [name for name in runs if name.endswith("seed 0, trained")][:3]:
        both = (runs[name], runs[name.replace("trained", "twins")])
        charts[f"Task {name}, and the band of twins"] = plot.curves(*both, labels=("trained", "twins"))
    return charts
