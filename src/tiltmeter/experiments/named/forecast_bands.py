"""Whether the calibrated bands of forecasts keep their promise on tasks that did not calibrate them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tiltmeter import plot
from tiltmeter.experiments.catalogue import Keep, Runs
from tiltmeter.experiments.claim import Claim, not_run, whether
from tiltmeter.experiments.kept import beside
from tiltmeter.experiments.named import forecast_routes
from tiltmeter.experiments.shared.band_scores import BandScore, band_scores, by_task
from tiltmeter.experiments.shared.band_table import band_table
from tiltmeter.experiments.shared.forecast_tasks import PICTURES
from tiltmeter.experiments.shared.route_rows import ScoredRuns, rows
from tiltmeter.experiments.shared.route_runs import DEFAULT, task_runs
from tiltmeter.experiments.shared.route_tasks import CALIBRATION, JUDGED, perceptrons
from tiltmeter.forecast.bands.conformal import conformal_factor
from tiltmeter.forecast.bands.forecast_band import LEVEL
from tiltmeter.forecast.bands.kind import KINDS, Kind
from tiltmeter.forecast.bands.scale import scaled
from tiltmeter.forecast.bands.shipped_scores import CURVES, What, shipped_scores
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
    numbers, without = setting.tasks, ("trained again", DEFAULT)
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
            every.append(_promise(kind, what, words, made, found, seeds))
    shipped = shipped_scores()
    if shipped.get("tasks") == sorted({int(name.split()[0]) for name in calibrating}):
        same = shipped["scores"] == made
        every.append(whether("The calibration shipped is that of these runs", same, "are all scores equal", safe=False))
    return tuple(every)


def _promise(kind: Kind, what: Any, words: str, made: Any, found: Sequence[BandScore], seeds: int) -> Claim:
    sentence = f"The 90 % band of {kind} holds whole {words}"
    factor = conformal_factor(made[kind]["loss"][what], LEVEL)
    chosen = [one for one in found if (one.kind, one.curve, one.what) == (kind, "loss", what)]
    if not np.isfinite(factor) or len({one.task for one in chosen}) < 3:
        return not_run(sentence, "Too few tasks to calibrate or to judge.")
    share, low, high = _coverage(by_task(list(found), kind, "loss", what), factor)
    return whether(
        sentence,
        low <= 1.0 - LEVEL <= high,
        "does the 95 % interval of the coverage, clustered by task, contain .90",
        f"{share:.3f} of {len(chosen)} runs of {len({one.task for one in chosen})} tasks, interval {low:.3f} to "
        f"{high:.3f}; half the width is {_width(chosen, factor):.2f} of the largest movement forecast (median).",
        seeds=seeds,
        safe=False,
    )


def tables(runs: Runs) -> Mapping[str, Table]:
    """Coverage and width by curve, and of gaps in the loss by optimiser and network."""
    made, found = band_table(_calibrating(runs))["scores"], band_scores(_judged(runs))
    head = ("band", "of", "factor", "runs", "inside", "95 % interval", "half width / movement")
    lines = [
        line
        for kind in KINDS
        for curve in CURVES
        for what in ("gap", "level")
        if (line := _line(made, found, kind, curve, what, f"{curve}, {what}")) is not None
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
        if (line := _line(made, [one for one in found if belongs(one)], kind, "loss", "gap", name)) is not None
    ]
    return {
        "Coverage of whole curves": Table(head, lines),
        "Gaps of the loss, by optimiser, network and groups": Table(head, split),
        "Who leads at the end, by the band": _leaders(_judged(runs), made),
    }


def pictures(runs: Runs) -> Mapping[str, Any]:
    """Runs and the band of their twins, for the first tasks."""
    charts: dict[str, Any] = {}
    for name in [name for name in _judged(runs) if name.endswith("seed 0, trained")][:3]:
        both = (runs[name], runs[name.replace("trained", "twins")])
        charts[f"Task {name}, and the band of twins"] = plot.curves(*both, labels=("trained", "twins"))
    return charts


def _line(
    made: Any, found: Sequence[BandScore], kind: Kind, curve: str, what: What, name: str
) -> tuple[str, ...] | None:
    chosen = [one for one in found if (one.kind, one.curve, one.what) == (kind, curve, what)]
    if not chosen:
        return None
    factor = conformal_factor(made[kind][curve][what], LEVEL)
    if not np.isfinite(factor):
        return (kind, name, "", str(len(chosen)), "", "", "")
    share, low, high = _coverage(by_task(list(found), kind, curve, what), factor)
    width = f"{_width(chosen, factor):.2f}"
    return (kind, name, f"{factor:.2f}", str(len(chosen)), f"{share:.3f}", f"{low:.2f} to {high:.2f}", width)


def _coverage(scores: Sequence[Sequence[float]], factor: float) -> tuple[float, float, float]:
    """Return the share of runs inside, every task counting as one, and its 95 % interval over tasks.

    Two tasks that are all inside and two that are all outside are added for the interval (Agresti and Coull, 1998): it
    has a width where all runs agree.
    """
    means = np.asarray([np.mean(np.asarray(task) <= factor) for task in scores])
    more = np.concatenate([means, [1.0, 1.0, 0.0, 0.0]])
    half = 1.96 * more.std(ddof=1) / np.sqrt(len(more))
    return float(means.mean()), float(max(0.0, more.mean() - half)), float(min(1.0, more.mean() + half))


def _width(chosen: Sequence[BandScore], factor: float) -> float:
    """Half the width, averaged over looks, over the largest movement that was forecast; the median over runs."""
    return float(np.median([factor * one.width / one.size for one in chosen if one.size > 0]))


def _leaders(judged: Runs, made: Any) -> Table:
    """How often the band names the final leader of pairs, and whether the run shows it."""
    counts = {kind: np.zeros(5, dtype=int) for kind in KINDS}
    for row in rows(judged):
        for kind in [kind for kind in KINDS if kind in row.scores and row.task.perceptron]:
            ahead = judged[f"{row.run}, {kind}"]
            groups = ahead["loss"].coords["group"].values.tolist()
            weights = np.zeros((1, len(groups)))
            weights[0, groups.index(row.truth.pair[0])], weights[0, groups.index(row.truth.pair[1])] = 1.0, -1.0
            found, factor = scaled(ahead, "loss", weights), conformal_factor(made[kind]["loss"]["gap"], LEVEL)
            told, half = float(found.told[-1, 0]), factor * float(found.scale[-1, 0])
            named = int(np.sign(told)) if abs(told) > half else 0
            real = row.truth.final
            place = (3 if not named else 4) if real is None else 2 if not named else int(named != real)
            counts[kind][place] += 1
    head = ("band", "right", "wrong", "none named", "none shown, none named", "none shown, one named")
    return Table(head, [(kind, *map(str, counts[kind])) for kind in KINDS])


def _calibrating(runs: Runs) -> Runs:
    return {name: one for name, one in runs.items() if int(name.split()[0]) in CALIBRATION}


def _judged(runs: Runs) -> ScoredRuns:
    if isinstance(runs, _Both):
        return runs.judged
    return ScoredRuns({name: one for name, one in runs.items() if int(name.split()[0]) in JUDGED})
