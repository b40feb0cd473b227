"""Nowcasts: the saved forecasts of the folder that go on from where a run stood."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tiltmeter.explorer.run_judgement import loaded
from tiltmeter.explorer.run_rows import Remembered, name_below, run_folder
from tiltmeter.explorer.what_if import forecast_told
from tiltmeter.explorer.what_if_sources import LARGEST_FILE
from tiltmeter.forecast.bands import nowcast_step
from tiltmeter.record import Trajectory
from tiltmeter.record.directory.small_files import RUN, TrajectoryHeader, read_header
from tiltmeter.record.origin import Origin
from tiltmeter.shown_text import visible

#: A nowcast begins with the numbers of the run, but for rounding.
EQUAL = 1e-4
#: The origin of every nowcast of the folder by the date of its run.json; None for any other run.
_origins = Remembered()


def run_nowcasts(root: str, runs: Sequence[str], curve: str) -> dict[str, Any]:
    """For every run that a saved nowcast goes on from: the newest of them, as it is told of any forecast."""
    there = run_folder(Path(root))
    candidates = [(path, origin) for path in there.values() if (origin := _nowcast(path)) is not None]
    answers = {}
    for run in runs if candidates else ():
        try:
            told = _told(Path(root), there[run], candidates, curve) if run in there else None
        except (ValueError, OSError, KeyError):
            continue  # what is wrong with a run is said where its curves are asked for
        if told is not None:
            answers[run] = told
    return answers


def goes_on_from(ahead: Trajectory, run: Trajectory) -> bool:
    """Whether a nowcast is one of this run.

    Both must name the same network, data and held-out points, as far as both say it. The first evaluation of the
    nowcast must have the numbers of the run at that step. If the run has no evaluation there, both must have the same
    recipe and order."""
    mine, other = ahead.origin, run.origin
    if nowcast_step(mine) is None or nowcast_step(other) is not None or not _alike(mine, other):
        return False
    shared = [name for name in ahead if name in run and "group" in ahead[name].dims and name in ("loss", "error")]
    compared = [_begins_alike(ahead, run, name) for name in shared]
    seen = [one for one in compared if one is not None]
    return all(seen) if seen else _same_recipe(mine, other)


def _told(root: Path, path: Path, candidates: list[tuple[Path, Origin]], curve: str) -> dict[str, Any] | None:
    run = loaded(root, path)
    for place, origin in sorted(candidates, key=lambda one: -(nowcast_step(one[1]) or 0.0)):
        if place == path or not _alike(origin, run.origin):
            continue
        try:
            ahead = loaded(root, place)
            if curve in ahead and goes_on_from(ahead, run):
                name = name_below(place, root.resolve())
                said = {"name": name, "from_step": nowcast_step(origin), "outlook": visible(_outlook(ahead, curve))}
                return {**forecast_told(ahead, curve), **said}
        except (ValueError, OSError, KeyError):
            continue  # a nowcast that cannot be read
    return None


def _nowcast(path: Path) -> Origin | None:
    """The origin of a nowcast; read once."""

    def origin_of(size: int) -> Origin | None:
        header = read_header(path) if size < LARGEST_FILE else None
        origin = header.origin if isinstance(header, TrajectoryHeader) else None
        return origin if origin is not None and nowcast_step(origin) is not None else None

    try:
        status = os.stat(path / RUN)
        origin: Origin | None = _origins.get(path, status.st_mtime_ns, lambda: origin_of(status.st_size))
    except (ValueError, OSError):
        return None
    return origin


def _alike(one: Origin, other: Origin) -> bool:
    if one.problem and other.problem and one.problem != other.problem:
        return False
    both = [name for name in ("model", "train") if name in one.settings and name in other.settings]
    return all(one.settings[name] == other.settings[name] for name in both)


def _begins_alike(ahead: Trajectory, run: Trajectory, name: str) -> bool | None:
    """Whether the first numbers are those of the run at that step; None if it has no evaluation there."""
    first = ahead[name].isel(time=0)
    first = first.mean("seed") if "seed" in first.dims else first
    curve, step = run[name], float(first.coords["time"])
    times = curve.coords["time"].values.astype(float)
    if step not in times or set(curve.dims) != {"time", "group"}:
        return None
    then = curve.isel(time=int(np.flatnonzero(times == step)[0]))
    if first.coords["group"].values.tolist() != then.coords["group"].values.tolist():
        return False
    return bool(np.allclose(first.values, then.values, rtol=EQUAL, atol=EQUAL * 0.01, equal_nan=True))


def _same_recipe(ahead: Origin, run: Origin) -> bool:
    told, said = ahead.recipe, run.recipe
    if not isinstance(told, Mapping) or not isinstance(said, Mapping):
        return False
    free = ("steps", "epochs", "order")
    order = said.get("order", run.seeds[0] if run.seeds else None)
    parts = ({name: value for name, value in one.items() if name not in free} for one in (told, said))
    return next(parts) == next(parts) and told.get("order") == order


def _outlook(ahead: Trajectory, curve: str) -> str:
    """What the nowcast means for the groups, where its rule is for this curve."""
    from tiltmeter.forecast.nowcast import outlook_of

    return str(outlook_of(ahead, curve)) if curve in ("loss", "error") else ""
