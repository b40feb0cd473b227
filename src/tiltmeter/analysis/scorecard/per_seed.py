"""PerSeed: what a scorecard compares, one number for each seed of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tiltmeter.analysis.scorecard.group_values import GroupValues
from tiltmeter.analysis.scorecard.loss_clock import worst_when_reached
from tiltmeter.analysis.scorecard.point_errors import PointValues


@dataclass(frozen=True, eq=False)
class PerSeed:
    """One number per seed of everything that is compared; `looks` are the selected ones, `points` what was kept."""

    run: GroupValues
    looks: np.ndarray
    points: PointValues | None
    at_selected: np.ndarray
    worst: np.ndarray
    best_ever: np.ndarray
    best_ever_time: float
    worst_area: np.ndarray
    gap_area: np.ndarray
    reached: list[np.ndarray]

    @classmethod
    def of(
        cls,
        run: GroupValues,
        looks: np.ndarray,
        shares: np.ndarray,
        marks: Sequence[float],
        points: PointValues | None = None,
    ) -> PerSeed:
        worst = run.values.max(axis=2)
        at_selected = run.values[np.arange(len(looks)), looks]
        ever = np.where(np.isfinite(worst), worst, np.inf)
        middle = ever.mean(axis=0)
        return cls(
            run=run,
            looks=looks,
            points=points,
            at_selected=at_selected,
            worst=at_selected.max(axis=1),
            best_ever=ever.min(axis=1),
            best_ever_time=float(run.times[int(np.argmin(middle))]),
            worst_area=run.over_training(worst),
            gap_area=run.over_training(np.ptp(run.values, axis=2)),
            reached=[worst_when_reached(run, shares, mark) for mark in marks],
        )
