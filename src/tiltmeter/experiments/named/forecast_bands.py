"""Whether the calibrated bands of forecasts keep their promise on tasks that did not calibrate them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from tiltmeter import plot
from tiltmeter.experiments.catalogue import Keep, Runs
from tiltmeter.experiments.claim import Claim, whether
from tiltmeter.experiments.kept import beside
from tiltmeter.experiments.named import forecast_routes
from tiltmeter.experiments.shared.band_promise import leaders_named, promise, table_line
from tiltmeter.experiments.shared.band_scores import BandScore, band_scores
from tiltmeter.experiments.shared.band_table import band_table
from tiltmeter.experiments.shared.forecast_tasks import PICTURES
from tiltmeter.experiments.shared.route_rows import ScoredRuns
from tiltmeter.experiments.shared.route_runs import DEFAULT, task_runs
from tiltmeter.experiments.shared.route_tasks import CALIBRATION, JUDGED, perceptrons
from tiltmeter.forecast.bands.kind import KINDS
from tiltmeter.forecast.bands.shipped_scores import CURVES, shipped_scores
from tiltmeter.record import Trajectory
from tiltmeter.report.page import Table

TITLE = "The 90 % band of a forecast holds nine of ten whole trainings"
PAPER = "tiltmeter's own claim, see docs/forecast.md"
# A literal: the list of experiments reads it without importing this module.
NEEDS: tuple[str, ...] = ("mnist", "fashion-mnist", "cifar10", "adult", "compas", "german")


@dataclass(frozen=True)
class Setting:
    """Numbers of `tasks` that calibrate, from `calibrating` seeds; the runs that judge are those of forecast-routes."""

    seeds: int = 1
    tasks: tuple[int, ...] = (205, 207)
    calibrating: int = 1
    judged: forecast_routes.Setting = field(default=forecast_routes.QUICK)


QUICK = Setting()
FULL = Setting(seeds=5, tasks=perceptrons(CALIBRATION), judged=forecast_routes.FULL)


class _Both(dict[str, Trajectory]):
    """The runs that calibrate and those that judge."""

    @cached_property
    def judged(self) -> ScoredRuns:
        return _judged(dict(self))


def run(setting: Setting, keep: Keep) -> Runs:
    """The trainings that calibrate and their forecasts; then those of forecast-routes, made there if they are not."""
    sizes, few = setting.judged.sizes, setting.calibrating
    numbers, without = setting.tasks, ("trained again", "coordinates without order", DEFAULT)
    found = _Both(task_runs(numbers, sizes, few, few, keep, without))
    judged = replace(setting.judged, seeds=setting.seeds)
    found.update(forecast_routes.run(judged, beside(keep, "forecast-routes", judged)))
    return found


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Is .90 inside the interval of the share of judged trainings that the bands hold?"""
    judged, calibrating = _judged(runs), _calibrating(runs)
    made, found = band_table(calibrating)["scores"], band_scores(judged)
    seeds = len({name.split(", ")[1] for name in judged})
    every = []
    for kind in KINDS:
        for what, words in (("gap", "gaps between groups"), ("level", "losses of groups")):
            every.append(promise(kind, what, words, made, found, seeds))
    shipped = shipped_scores()
    if shipped.get("tasks") == sorted({int(name.split()[0]) for name in calibrating}):
        same = shipped["scores"] == made
        every.append(whether("The calibration shipped is that of these runs", same, "are all scores equal", safe=False))
    return tuple(every)


def tables(runs: Runs) -> Mapping[str, Table]:
    """Coverage and width by curve, and of gaps in the loss by optimiser and network."""
    made, found = band_table(_calibrating(runs))["scores"], band_scores(_judged(runs))
    head = ("band", "of", "factor", "runs", "inside", "95 % interval", "half width / movement")
    lines = [
        line
        for kind in KINDS
        for curve in CURVES
        for what in ("gap", "level")
        if (line := table_line(made, found, kind, curve, what, f"{curve}, {what}")) is not None
    ]
    parts: dict[str, Callable[[BandScore], bool]] = {
        "SGD": lambda one: one.task.optimiser == "SGD",
        "Adam and AdamW": lambda one: one.task.optimiser != "SGD",
        "images": lambda one: one.task.data in PICTURES,
        "people": lambda one: one.task.data not in PICTURES,
        "two groups": lambda one: not one.task.three_groups,
        "three groups": lambda one: one.task.three_groups,
    }
    split = [
        line
        for kind in KINDS
        for name, belongs in parts.items()
        if (line := table_line(made, [one for one in found if belongs(one)], kind, "loss", "gap", name)) is not None
    ]
    return {
        "Coverage of whole curves": Table(head, lines),
        "Gaps of the loss, by optimiser, network and groups": Table(head, split),
        "Who leads at the end, by the band": leaders_named(_judged(runs), made),
    }


def pictures(runs: Runs) -> Mapping[str, Any]:
    """Runs and the band of their twins, for the first tasks."""
    charts: dict[str, Any] = {}
    for name in [name for name in _judged(runs) if name.endswith("seed 0, trained")][:3]:
        both = (runs[name], runs[name.replace("trained", "twins")])
        charts[f"Task {name}, and the band of twins"] = plot.curves(*both, labels=("trained", "twins"))
    return charts


def _calibrating(runs: Runs) -> Runs:
    return {name: one for name, one in runs.items() if int(name.split()[0]) in CALIBRATION}


def _judged(runs: Runs) -> ScoredRuns:
    if isinstance(runs, _Both):
        return runs.judged
    chosen = perceptrons(JUDGED)  # other networks have no band
    return ScoredRuns({name: one for name, one in runs.items() if int(name.split()[0]) in chosen})
