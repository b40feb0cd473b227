"""Series: one curve of one or several trajectories as series for a chart, one per group and trajectory."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr

from tiltmeter.analysis.over_seeds import over_seeds
from tiltmeter.analysis.pairs import SURE
from tiltmeter.forecast.bands.forecast_band import calibrated_band
from tiltmeter.plot.horizon_rule import horizon_step
from tiltmeter.plot.theme import GroupStyle, group_name, style_of
from tiltmeter.record.run_names import numbered
from tiltmeter.record.trajectory import Trajectory

#: Origins that are calculated, not measured: drawn as lines if a chart has both kinds.
CALCULATED = ("theory", "forecast", "moments")


@dataclass(frozen=True)
class Series:
    """One line, or one row of marks, with a band if known: two standard errors, or the `promised` one of a forecast.

    The label names group and trajectory as far as needed; it is empty if there is only one of each. Beyond `until` a
    forecast should not be trusted.
    """

    label: str
    mark: Literal["line", "points"]
    style: GroupStyle
    times: np.ndarray
    middle: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    until: float | None = None
    promised: float | None = None


def series_of(
    trajectories: Sequence[Trajectory], curve: str, groups: Sequence[Hashable] | None, labels: Sequence[str] | None
) -> list[Series]:
    """All series of a chart, in the order of the legend: trajectory by trajectory, group by group."""
    names = numbered([one.origin.source for one in trajectories]) if labels is None else list(labels)
    every = groups_among(trajectories, curve)
    wanted = every if groups is None else chosen(every, groups)
    together = any(t.origin.source in CALCULATED for t in trajectories)
    found: list[Series] = []
    layers = {"line": 0, "points": 0}
    for trajectory, name in zip(trajectories, names, strict=True):
        middle, margin = band(trajectory, curve)
        promised = promised_share(trajectory, curve)
        times = middle.coords["time"].values
        marks = times[times > 0].size < 2 or (together and trajectory.origin.source not in CALCULATED)
        mark: Literal["line", "points"] = "points" if marks else "line"
        for group in wanted:
            if (values := _of_group(middle, group)) is None:
                continue
            error = None if margin is None else _of_group(margin, group)
            parts = ([] if group is None else [group_name(group)]) + ([name] if len(trajectories) > 1 else [])
            found.append(
                Series(
                    label=", ".join(parts),
                    mark=mark,
                    style=style_of(group, every, layers[mark]),
                    times=times,
                    middle=values,
                    low=None if error is None else values - error,
                    high=None if error is None else values + error,
                    until=horizon_step(trajectory, curve),
                    promised=promised,
                )
            )
        layers[mark] += 1
    return found


def groups_among(trajectories: Sequence[Trajectory], curve: str) -> list[Hashable]:
    """Every group (or pair of groups) of a curve, in order of appearance; None for a curve without any."""
    found: dict[Hashable, None] = {}
    for trajectory in trajectories:
        values = trajectory[curve]
        extra = [str(dim) for dim in values.dims if dim not in ("time", "group", "pair", "seed")]
        if extra:
            if extra == ["class"]:
                raise ValueError(
                    f"Curve {curve!r} has one value per class: use `plot.class_curves`, or select a class."
                )
            places = ", ".join(f"{dim}=..." for dim in extra)
            raise ValueError(
                f"Curve {curve!r} has a grid over {', '.join(extra)}, and a picture over time shows one run. Select a "
                f"point: trajectory.replace({{{curve!r}: trajectory[{curve!r}].sel({places})}})."
            )
        dim = _dimension(values)
        found.update(dict.fromkeys([None] if dim is None else values.coords[dim].values.tolist()))
    return list(found)


def chosen(every: Sequence[Hashable], groups: Sequence[Hashable]) -> list[Hashable]:
    """The requested groups, checked."""
    for group in groups:
        if group not in every:
            raise KeyError(f"No group {group!r}. There are: {', '.join(map(repr, every))}.")
    return list(groups)


def band(trajectory: Trajectory, curve: str) -> tuple[xr.DataArray, xr.DataArray | None]:
    """The curve, averaged over seeds, and half the width of its band: that of a forecast, or two standard errors."""
    promise = calibrated_band(trajectory, curve)
    if promise is not None:
        told = promise.values.sel(bound="told", drop=True)
        return told, promise.values.sel(bound="high", drop=True) - told
    values = trajectory[curve]
    values = values.where(np.isfinite(values))
    if "seed" in values.dims:
        mean, error = over_seeds(values)
        if values.sizes["seed"] > 1:
            return mean, SURE * error
        values = mean
    if f"{curve}_se" in trajectory:
        error = trajectory[f"{curve}_se"]
        error = error.mean("seed") if "seed" in error.dims else error
        return values, SURE * error.reindex(time=values.coords["time"])
    return values, None


def promised_share(trajectory: Trajectory, curve: str) -> float | None:
    """The share of trainings that the band of a forecast holds; None for any other band."""
    found = calibrated_band(trajectory, curve)
    return None if found is None else 1.0 - found.level


def _dimension(values: xr.DataArray) -> str | None:
    return next((dim for dim in ("group", "pair") if dim in values.dims), None)


def _of_group(values: xr.DataArray, group: Hashable) -> np.ndarray | None:
    dim = _dimension(values)
    labels: list[Any] = [None] if dim is None else values.coords[dim].values.tolist()
    if group not in labels:
        return None
    one = values if dim is None else values.isel({dim: labels.index(group)})
    return one.values
