"""Run curves: what a chart of runs needs, read from files while they grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.explorer.downsample import downsample
from tiltmeter.explorer.run_folder import refusal, run_folder
from tiltmeter.explorer.run_rows import alike, state_of
from tiltmeter.names import better_of
from tiltmeter.plot.theme import group_name
from tiltmeter.record.directory.follow import Following
from tiltmeter.visible_text import visible

#: Runs that were shown last, so that the next look at them reads only what is new.
_followed: dict[Path, Following] = {}
KEPT = 64


def run_curves(root: str, runs: Sequence[str], curve: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """For every run its curve, downsampled, or its sentence of refusal; nothing where it is as it is `known`."""
    there = run_folder(Path(root))
    answers: dict[str, Any] = {}
    for run in runs:
        if run not in there:
            answers[run] = {"error": "This run is no longer there."}
            continue
        try:
            answers[run] = _one(Path(root), there[run], curve, known.get(run))
        except FileNotFoundError:
            answers[run] = {"error": "This run is no longer there."}
        except (ValueError, OSError, MemoryError) as error:
            answers[run] = {"error": visible(str(error).replace(str(Path(root).resolve()), ""))}
    return answers


def _one(root: Path, run: Path, curve: str, known: Any) -> dict[str, Any]:
    following = _followed.pop(run, None)
    if following is None:
        refused = refusal(root, run)
        if refused is not None:
            return {"error": refused}
        following = Following(run)
    following.update()
    _followed[run] = following
    while len(_followed) > KEPT:
        del _followed[next(iter(_followed))]
    state = state_of(run)
    version = f"{following.bytes}.{state}.{curve}"
    if known == version:
        return {"version": version, "same": True}
    trajectory = following.trajectory
    names = [name for name, one in trajectory.items() if shown(one)]
    chosen = curve if curve in names else names[0] if names else None
    told: dict[str, Any] = {
        "version": version,
        "state": state,
        "looks": following.looks,
        "clock": trajectory.clock,
        "source": visible(trajectory.origin.source),
        "alike": alike(trajectory.origin),
        "curves": [visible(name) for name in names],
        "curve": None if chosen is None else visible(chosen),
    }
    if chosen is None:
        return told
    values = trajectory[chosen]
    try:
        told["better"] = better_of(chosen, values)
    except ValueError:
        told["better"] = "neither"
    return {**told, **series(values)}


def shown(curve: xr.DataArray) -> bool:
    """Whether a curve has one number for each group and look, or for each of a few seeds."""
    return (
        set(curve.dims) <= {"time", "group", "seed"} and curve.dtype.kind == "f" and curve.sizes.get("seed", 1) <= 256
    )


def series(values: xr.DataArray) -> dict[str, Any]:
    """Times, groups and values (looks, groups); of several seeds the mean."""
    if "seed" in values.dims:
        values = values.mean("seed")
    if "group" not in values.dims:
        values = values.expand_dims("group").assign_coords(group=["all"])
    array = np.asarray(values.transpose("time", "group").values, dtype=float)
    times = np.asarray(values.coords["time"].values, dtype=float)
    kept = downsample(times, array)
    rows = np.where(np.isfinite(array[kept]), array[kept], np.nan)
    return {
        "groups": [group_name(label) for label in values.coords["group"].values.tolist()],
        "times": times[kept].tolist(),
        "values": rows.tolist(),
        "all_looks": len(kept) == len(times),
    }
