"""Scores of bands: how far a training leaves its forecast, in scales, over all looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from tiltmeter.analysis.simultaneous.contrasts import pairs
from tiltmeter.experiments.catalogue import Runs
from tiltmeter.experiments.shared.route_tasks import RouteTask, draw_route_task
from tiltmeter.forecast.bands.kind import KINDS, Kind, kind_of
from tiltmeter.forecast.bands.scale import scaled
from tiltmeter.forecast.bands.shipped_scores import CURVES, What
from tiltmeter.record import Trajectory


@dataclass(frozen=True)
class BandScore:
    """One curve of one run against its forecast.

    `score` is the largest distance over all looks and pairs (or groups), in scales: the run is inside a band of at
    least this factor. `width` is the mean scale over looks and pairs, and `size` the largest gap that is forecast (or
    movement of a level), which widths are compared with.
    """

    task: RouteTask
    kind: Kind
    curve: str
    what: What
    score: float
    width: float
    size: float


def band_score(ahead: Trajectory, run: Trajectory, curve: str, what: What) -> tuple[float, float, float]:
    """Return score, mean scale and largest movement forecast of one curve; values that the run lacks do not count."""
    groups = ahead[curve].sizes["group"]
    contrasts = np.eye(groups) if what == "level" else pairs(groups)
    found = scaled(ahead, curve, contrasts)
    real = run[curve].sel(time=found.times).transpose("time", "group").values @ contrasts.T
    off = np.abs(real - found.told)[1:] / found.scale[1:]
    lost = np.isfinite(real)[1:] & ~np.isfinite(off)  # a forecast without a value misses
    score = float(np.where(lost, np.inf, np.nan_to_num(off)).max())
    size = np.abs(found.told - (0.0 if what == "gap" else found.told[:1]))
    return score, float(np.nanmean(found.scale[1:])), float(np.nanmax(size))


def band_scores(runs: Runs) -> list[BandScore]:
    """The scores of all forecasts of the runs that have them, in every calibrated curve."""
    found = []
    for name in [name for name in runs if name.endswith(", trained")]:
        short, real = name.removesuffix(", trained"), runs[name]
        task = draw_route_task(int(short.split()[0]))
        for kind in KINDS:
            ahead = runs.get(f"{short}, {kind}")
            if ahead is None or kind_of(ahead)[0] != kind:  # networks without a band are not judged by it
                continue
            for curve in CURVES:
                for what in get_args(What):
                    found.append(BandScore(task, kind, curve, what, *band_score(ahead, real, curve, what)))
    return found


def by_task(scores: list[BandScore], kind: Kind, curve: str, what: What) -> list[list[float]]:
    """The scores of one kind in one curve, one list for every task."""
    chosen = [one for one in scores if (one.kind, one.curve, one.what) == (kind, curve, what)]
    tasks = dict.fromkeys(one.task for one in chosen)
    return [[one.score for one in chosen if one.task == task] for task in tasks]
