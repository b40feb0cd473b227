"""Minority drop: whether a rare class first gets worse, by how much, and for how long."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter_lab.shared.over_seeds import mean_and_error


@dataclass(frozen=True)
class MinorityDrop:
    """Recall of one class at the first evaluation, at its lowest, and at the last evaluation; means over seeds.

    `drop` is start minus lowest, with standard error `error` over seeds (one run: NaN). `lowest_at` and `back_at` are
    median times; `back_at` is infinite if most runs never return to their start. `loss_rise` is the largest loss minus
    the first.
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


def minority_drop(trajectory: tm.Trajectory, group: Hashable, curve: str = "error") -> MinorityDrop:
    """Measure how far the recall of a class first falls below its start (Francazi, Baity-Jesi and Lucchi, 2023).

    >>> right = xr.DataArray([[0.5, 0.4], [0.9, 0.0], [0.9, 0.6]], dims=("time", "group"),
    ...                      coords={"time": [0.0, 1.0, 2.0], "group": ["many", "few"]}, attrs={"better": "higher"})
    >>> print(minority_drop(tm.Trajectory({"recall": right}, "step", tm.record.Origin("training")), "few", "recall"))
    few: 40.0% decided right at first, 0.0% at worst, 60.0% last; worst at step = 1, back at step = 2.

    The classes should be the groups: `GroupedData(x, y, "label")`. Recall is one minus `curve` if lower is better, else
    `curve` itself. The lowest point is found for each seed, then averaged. The lowest of many noisy evaluations is
    slightly below the start even without an effect; the drop of balanced classes is the null value.

    It does not tell the cause. A drop also occurs if the initial model happens to favour the class. On held-out points
    a late drop may be overfitting; look at the training points to tell.
    """
    values = trajectory[curve]
    right = _rows(values if values.attrs.get("better") == "higher" else 1.0 - values, group, curve)
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
    groups = list(values.coords["group"].values.tolist())
    if group not in groups:
        raise KeyError(f"No group {group!r}. There are: {', '.join(map(repr, groups))}.")
    extra = [str(dim) for dim in values.dims if dim not in ("time", "group", "seed")]
    if extra:
        raise ValueError(f"`minority_drop` is for one run; select one point of {', '.join(extra)} of {name!r} first.")
    one = values.isel(group=groups.index(group))
    return np.asarray(one.transpose("time", ...).values.reshape(one.sizes["time"], -1))


def _back(times: np.ndarray, right: np.ndarray, worst: int) -> float:
    """Return when it is first as good as at the start, after its lowest point."""
    again = np.flatnonzero(right[worst:] >= right[0])
    return float(times[worst + again[0]]) if len(again) else np.inf
