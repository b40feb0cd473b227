"""regrouped: the run of some of its points in other groups."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.leaders.points import KeptPoints, described_held_out
from tiltmeter.names import described
from tiltmeter.record.labelled import label_to_json, labels_array
from tiltmeter.record.trajectory import Trajectory


def regrouped(
    run: Trajectory,
    kept: KeptPoints,
    places: np.ndarray,
    codes: np.ndarray,
    groups: Sequence[Hashable],
    last: bool = False,
) -> Trajectory:
    """The run on these points in other groups (`codes` into `groups`), with curves, points and sizes of those."""
    members, seeds = labels_array(groups), _seeds(run)
    labels: dict[str, Any] = {"time": kept.times[-1:] if last else kept.times, "group": members, "seed": seeds}
    curves: dict[str, xr.DataArray] = {}
    for curve in kept.curves:
        readings = (curve.values[..., -1:, :] if last else curve.values)[..., places]
        counted = np.full(len(places), True) if curve.where is None else curve.where[places]
        for name, values in _means(curve.name, readings[..., counted], codes[counted], len(groups)).items():
            dims = ("seed", "time", "group")[-values.ndim :]
            array = xr.DataArray(values, dims=dims, coords={dim: labels[dim] for dim in dims})
            array = array.transpose("time", "group", *dims[:-2])
            attrs = dict(run[name].attrs) if name in run else {}
            curves[name] = array.assign_attrs(attrs) if attrs else described(name, array)
    points = {
        name: _part(run.points[name], seeds, last).isel(point=places).assign_coords(group=("point", members[codes]))
        for name in run.points
        if "point" in run.points.sizes(name)
    }
    origin = replace(run.origin, problem={"held_out": _facts(run, kept, places, codes, groups)})
    return Trajectory(curves, run.clock, origin, points=points)


def _means(name: str, values: np.ndarray, codes: np.ndarray, groups: int) -> dict[str, np.ndarray]:
    """The mean of every group with its standard error, (seeds,) evaluations x groups."""
    means, errors = [], []
    for code in range(groups):
        chosen = values[..., codes == code].astype(np.float64)
        missing = np.full(chosen.shape[:-1], np.nan)
        count = chosen.shape[-1]
        means.append(chosen.mean(-1) if count else missing)
        errors.append(chosen.std(-1, ddof=1) / np.sqrt(count) if count > 1 else missing)
    return {name: np.stack(means, -1), f"{name}_se": np.stack(errors, -1)}


def _seeds(run: Trajectory) -> np.ndarray | None:
    """The labels of the seeds that are judged: those of the curves, without those that diverged; None of one run."""
    points = next((run.points[name] for name in ("loss", "decided_positive", "wrong") if name in run.points), None)
    if points is None or "seed" not in points.dims:
        return None
    shown = next((curve for curve in run.values() if "seed" in curve.dims), None)
    if shown is not None:
        points = points.sel(seed=shown.coords["seed"].values)
    finite = np.isfinite(points.transpose("seed", "time", "point").values).all((1, 2))
    return np.asarray(points.coords["seed"].values[finite if finite.any() else slice(None)])


def _part(points: xr.DataArray, seeds: np.ndarray | None, last: bool) -> xr.DataArray:
    points = points if seeds is None or "seed" not in points.dims else points.sel(seed=seeds)
    return points.isel(time=[-1]) if last and "time" in points.dims else points


def _facts(
    run: Trajectory, kept: KeptPoints, places: np.ndarray, codes: np.ndarray, groups: Sequence[Hashable]
) -> dict[str, Any]:
    """What the origin says of the held-out points, for the new groups."""
    left = ("sizes", "label_rates", "reading")
    facts = {name: value for name, value in described_held_out(run).items() if name not in left}
    sizes = np.bincount(codes, minlength=len(groups)).tolist()
    facts |= {"points": len(places), "weighted": False}
    facts["sizes"] = [[label_to_json(group), size] for group, size in zip(groups, sizes, strict=True)]
    positives = kept.named(["tpr"])
    if positives and positives[0].where is not None:
        rates = np.bincount(codes, positives[0].where[places], len(groups)) / np.maximum(sizes, 1)
        facts["label_rates"] = [
            [label_to_json(group), [[0.0, 1.0 - rate], [1.0, rate]]]
            for group, rate in zip(groups, rates.tolist(), strict=True)
        ]
    return facts
