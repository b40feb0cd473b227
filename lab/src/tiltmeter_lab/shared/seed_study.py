"""seed_study: the arms and seeds of an experiment as cells of a study, so that it can be cut off at any time.

An experiment whose module has a function `arm(setting, name, seeds)` gets all its runs here. A cell trains a few seeds
of one arm. First come the first seeds of every arm, so that whatever is complete covers all of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import xarray as xr

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep, Runs, find
from tiltmeter_lab.kept import Kept
from tiltmeter_lab.shared.atlas_study import CELLS, cell_seconds

#: Of the cells: to be changed when `arm` of an experiment changes its meaning.
VERSION = "1"


def seed_study(keep: Keep, name: str, setting: Any, arms: Sequence[str], seeds: Sequence[int]) -> Runs:
    """One run for each arm over all seeds, `setting.together` of them in a cell; None: all at once, without a study.

    With `keep.partial` nothing is computed: every arm has the seeds that are complete.
    """
    together = setting.together
    if together is None or not isinstance(keep, Kept):
        arm = find(name).arm
        return {one: keep(one, lambda one=one: arm(setting, one, list(seeds))) for one in arms}  # type: ignore[misc]
    plain = json.loads(json.dumps(asdict(setting)))
    parts = [list(seeds[first : first + together]) for first in range(0, len(seeds), together)]
    cells = [{"experiment": name, "arm": arm, "seeds": part, "setting": plain} for part in parts for arm in arms]
    study = lab.Study(arm_cell, cells=cells, seeds=None, to=Path(keep.place) / CELLS, version=VERSION)
    if not keep.partial:
        study.run(progress=keep.tells)
        if failures := study.failures():
            raise RuntimeError(f"{len(failures)} of {len(cells)} cells failed, first: {failures[0]}")
    found: dict[str, list[tm.Trajectory]] = {arm: [] for arm in arms}
    seconds = dict.fromkeys(arms, 0.0)
    for (settings, result), took in zip(study.results(), cell_seconds(study), strict=True):
        assert isinstance(result, tm.Trajectory)
        found[settings["arm"]].append(result)
        seconds[settings["arm"]] += took
    if empty := [arm for arm, runs in found.items() if not runs]:
        raise ValueError(f"Nothing to judge yet: no seed of {empty[0]!r} is complete.")
    return {arm: keep.collected(arm, joined_seeds(runs), seconds[arm], len(seeds)) for arm, runs in found.items()}


def arm_cell(settings: dict[str, Any]) -> tm.Trajectory:
    """Some seeds of one arm of an experiment; its setting is given in plain JSON."""
    module = find(settings["experiment"])
    setting = type(module.FULL)(**{name: _tuples(value) for name, value in settings["setting"].items()})
    made: tm.Trajectory = module.arm(setting, settings["arm"], settings["seeds"])
    return made


def joined_seeds(runs: Sequence[tm.Trajectory]) -> tm.Trajectory:
    """Runs of different seeds as one, points included.

    >>> def run(seed):
    ...     loss = xr.DataArray([[1.0], [2.0]], dims=("time", "seed"), coords={"time": [0, 1], "seed": [seed]})
    ...     return tm.Trajectory({"loss": loss}, "step", tm.record.Origin("training", seeds=(seed,)))
    >>> joined_seeds([run(4), run(7)])["loss"].coords["seed"].values
    array([4, 7])
    """
    first = runs[0]
    if len(runs) == 1:
        return first
    points = {
        name: tm.record.HeldPoints(_along_seeds([run.points[name] for run in runs]))
        for name in first.points
        if all(name in run.points for run in runs) and "seed" in first.points.sizes(name)
    }
    ends = [_diverged(run) for run in runs]
    return tm.Trajectory(
        {name: _along_seeds([run[name] for run in runs]) for name in first},
        first.clock,
        replace(first.origin, seeds=tuple(seed for run in runs for seed in run.origin.seeds)),
        None if all(run.diverged is None for run in runs) else _along_seeds(ends),
        points=tm.record.Points(points),
    )


def _diverged(run: tm.Trajectory) -> xr.DataArray:
    """The time at which each seed diverged, NaN where it did not."""
    if run.diverged is not None:
        return run.diverged
    seeds = list(run.origin.seeds)
    return xr.DataArray([float("nan")] * len(seeds), dims="seed", coords={"seed": seeds})


def _along_seeds(arrays: Sequence[xr.DataArray]) -> xr.DataArray:
    if "seed" not in arrays[0].dims:
        return arrays[0]
    return xr.concat(arrays, "seed", join="outer", combine_attrs="override", coords="minimal", compat="override")


def _tuples(value: Any) -> Any:
    return tuple(_tuples(one) for one in value) if isinstance(value, list) else value
