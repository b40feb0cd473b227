"""Run curves: what a chart of runs needs, read from files while they grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.explorer.run_rows import alike, refusal, run_folder, state_of
from tiltmeter.leaders.leaders import asked_of
from tiltmeter.names import better_of
from tiltmeter.plot.theme import group_name
from tiltmeter.record import Trajectory
from tiltmeter.record.directory.point_records import POINTS
from tiltmeter.record.directory.reader import RunReader
from tiltmeter.shown_text import visible

#: Evaluations up to here are all shown.
ALL = 1500
#: Columns of a chart, for linear time and for log time; in each the extremes of every curve are kept.
COLUMNS = 200
#: The most crossings of recorded values whose two evaluations are kept.
CROSSINGS = 1000


def downsample(times: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The places of the evaluations to show, in order, for `values` (evaluations, curves).

    >>> times = np.arange(100_000.0)
    >>> values = np.stack([np.exp(-times / 9e3), np.full_like(times, 0.2)], 1)
    >>> kept = downsample(times, values)
    >>> len(kept) < 2000, kept[0], kept[-1]
    (True, np.int64(0), np.int64(99999))
    >>> crossed = np.flatnonzero(np.diff(np.sign(values[:, 0] - values[:, 1])))[0]
    >>> bool(crossed in kept and crossed + 1 in kept)
    True

    The evaluation before and the evaluation after every change of order between two curves stay, so that lines drawn
    between evaluations cross where those of all evaluations cross. Of more than a thousand such changes, an even
    selection stays."""
    count = len(times)
    if count <= ALL:
        return np.arange(count)
    kept = [np.array([0, count - 1])]
    positive = np.maximum(times - times[0], (times[-1] - times[0]) / 1e6)
    for scale in (times, np.log(positive)):
        column = np.minimum((COLUMNS * (scale - scale[0]) / (scale[-1] - scale[0])).astype(int), COLUMNS - 1)
        starts = np.flatnonzero(np.diff(column, prepend=-1))
        for curve in values.T:
            kept += [_extremes(curve, starts, np.fmin), _extremes(curve, starts, np.fmax)]
    kept.append(_crossings(values))
    return np.unique(np.concatenate(kept))


def _extremes(curve: np.ndarray, starts: np.ndarray, pick: np.ufunc) -> np.ndarray:
    """In every column the first evaluation with its extreme value."""
    best = np.repeat(pick.reduceat(curve, starts), np.diff(starts, append=len(curve)))
    places = np.flatnonzero(curve == best)
    column = np.searchsorted(starts, places, side="right")
    return places[np.flatnonzero(np.diff(column, prepend=-1))]


def _crossings(values: np.ndarray) -> np.ndarray:
    found = []
    for i in range(values.shape[1]):
        for j in range(i):
            sign = np.sign(values[:, i] - values[:, j])
            found.append(np.flatnonzero(sign[1:] * sign[:-1] < 0))
    changes = np.unique(np.concatenate(found)) if found else np.empty(0, int)
    if len(changes) > CROSSINGS:
        changes = changes[np.linspace(0, len(changes) - 1, CROSSINGS).astype(int)]
    return np.concatenate([changes, changes + 1])


#: Runs that were shown last, so that the next evaluation at them reads only what is new.
_followed: dict[Path, RunReader] = {}
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
        following = RunReader(run)
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
    chosen = first_curve(trajectory, curve, names) if names else None
    told: dict[str, Any] = {
        "version": version,
        "state": state,
        "evaluations": following.evaluations,
        "clock": trajectory.clock,
        "source": visible(trajectory.origin.source),
        "alike": alike(trajectory.origin),
        "points": (run / POINTS).is_dir(),
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


def first_curve(trajectory: Trajectory, asked: str, names: Sequence[str]) -> str:
    """The curve to show of these: the one asked for, else the one that answers the task's question, else the loss."""
    question = asked_of(trajectory)
    wanted = (asked, "" if question is None else question.asked, "loss", *names)
    return next(name for name in wanted if name in names)


def shown(curve: xr.DataArray) -> bool:
    """Whether a curve has one number for each group and evaluation, or for each of a few seeds."""
    return (
        set(curve.dims) <= {"time", "group", "seed"} and curve.dtype.kind == "f" and curve.sizes.get("seed", 1) <= 256
    )


def series(values: xr.DataArray) -> dict[str, Any]:
    """Times, groups and values (evaluations, groups); of several seeds the mean."""
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
        "all_evaluations": len(kept) == len(times),
    }
