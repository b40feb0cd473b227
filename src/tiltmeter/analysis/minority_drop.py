"""Minority drop: does a rare class first get worse, how far, and for how long?"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import xarray as xr

from tiltmeter.analysis.over_seeds import mean_and_error
from tiltmeter.analysis.pairs import groups_of, leader_sign
from tiltmeter.record.trajectory import Trajectory


@dataclass(frozen=True)
class MinorityDrop:
    """Share decided right of one class: at the first look, at its lowest, and at the last; means over seeds.

    `drop` is start minus lowest, with standard error `error` over seeds (of one run: NaN); `lowest_at` and `back_at`
    are median times, the latter infinite where most runs never come back to where they started; `loss_rise` is the
    largest loss minus the first.
    """

    group: Hashable
    start: float
    lowest: float
    end: float
    drop: float
    error: float
    lowest_at: float
    back_at: float
    loss_rise: float
    clock: str
    seeds: int

    def __str__(self) -> str:
        head = f"{self.group}: {self.start:.1%} decided right at first, {self.lowest:.1%} at worst, {self.end:.1%} last"
        if self.drop <= 0:
            return f"{head}; it never gets worse."
        back = f"back at {self.clock} = {self.back_at:.4g}" if np.isfinite(self.back_at) else "not back by the end"
        return f"{head}; worst at {self.clock} = {self.lowest_at:.4g}, {back}."


def minority_drop(trajectory: Trajectory, group: Hashable, curve: str = "error") -> MinorityDrop:
    """How far the recall of a class falls below its start before it rises (Francazi, Baity-Jesi and Lucchi, 2023).

    >>> right = xr.DataArray([[0.5, 0.4], [0.9, 0.0], [0.9, 0.6]], dims=("time", "group"),
    ...                      coords={"time": [0.0, 1.0, 2.0], "group": ["many", "few"]}, attrs={"better": "higher"})
    >>> from tiltmeter.record import Origin
    >>> print(minority_drop(Trajectory({"recall": right}, "step", Origin("training")), "few", "recall"))
    few: 40.0% decided right at first, 0.0% at worst, 60.0% last; worst at step = 1, back at step = 2.

    The classes should be the groups: `GroupedData(x, y, "label")`. Recall is one minus `curve` where lower is better,
    else `curve` itself. Every seed has its own lowest point; averages come after. The lowest of many noisy looks lies a
    little below the start even where nothing happens: the drop of balanced classes says how far.

    It does not say why: a drop also follows from a start that happens to favour the class, and on new points from
    overfitting, late; look at the points trained on to tell.
    """
    values = trajectory[curve]
    right = _rows(values if leader_sign(curve, values) < 0 else 1.0 - values, group, curve)
    times = values.coords["time"].values
    worst = right.argmin(0)
    back = np.array([_back(times, column, place) for column, place in zip(right.T, worst, strict=True)])
    drop = right[0] - right.min(0)
    rise = np.full(1, np.nan)
    if "loss" in trajectory and "group" in trajectory["loss"].dims:
        loss = _rows(trajectory["loss"], group, "loss")
        rise = loss.max(0) - loss[0]
    return MinorityDrop(
        group=group,
        start=float(right[0].mean()),
        lowest=float(right.min(0).mean()),
        end=float(right[-1].mean()),
        drop=float(drop.mean()),
        error=mean_and_error(drop)[1],
        lowest_at=float(np.median(times[worst])),
        back_at=float(np.median(back)),
        loss_rise=float(rise.mean()),
        clock=trajectory.clock,
        seeds=len(drop),
    )


def _rows(values: xr.DataArray, group: Hashable, name: str) -> np.ndarray:
    """(time, seed) of one group."""
    groups = groups_of(values)
    if group not in groups:
        raise KeyError(f"No group {group!r}. There are: {', '.join(map(repr, groups))}.")
    extra = [str(dim) for dim in values.dims if dim not in ("time", "group", "seed")]
    if extra:
        raise ValueError(f"`minority_drop` is for one run; select one point of {', '.join(extra)} of {name!r} first.")
    one = values.isel(group=groups.index(group))
    return np.asarray(one.transpose("time", ...).values.reshape(one.sizes["time"], -1))


def _back(times: np.ndarray, right: np.ndarray, worst: int) -> float:
    """When it is first as good as at the start, after its worst."""
    again = np.flatnonzero(right[worst:] >= right[0])
    return float(times[worst + again[0]]) if len(again) else np.inf
