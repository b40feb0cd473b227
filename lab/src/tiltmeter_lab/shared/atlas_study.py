"""A study inside an experiment: its cells lie beside the runs, its table is one run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import xarray as xr

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep
from tiltmeter_lab.kept import Kept
from tiltmeter_lab.study.folder import CELL

#: The folder of the cells, beside the runs of the experiment.
CELLS = "study"


def study_run(
    keep: Keep,
    name: str,
    cell: Callable[[dict[str, Any]], xr.Dataset],
    factors: Mapping[str, Sequence[Any]],
    seeds: int,
    fraction: float | None = None,
    version: str = "1",
) -> tm.Trajectory:
    """The table of a study as a run of the experiment; an interrupted one goes on from the cells that are complete.

    A cell trains all its seeds: their number is one of its settings, `seeds`, and `seed` a dimension of its result.
    Every variable of the table is a curve whose first dimension, `moment`, became `time`: 0, 1, ... in its order.
    """

    def study_in(place: Path) -> lab.Study:
        return lab.Study(cell, {**factors, "seeds": [seeds]}, None, place, fraction=fraction, version=version)

    if not isinstance(keep, Kept):
        with TemporaryDirectory() as folder:
            return keep(name, lambda: _computed(study_in(Path(folder)), factors, seeds, False))
    study = study_in(Path(keep.place) / CELLS / name)
    status = study.status()
    if keep.partial and not status.complete:
        if not status.done:
            raise ValueError(f"Nothing to judge yet: no cell of {name!r} is complete.")
        return keep.collected(name, _as_run(study, factors, seeds), sum(cell_seconds(study)), status.total, status.done)
    return keep(name, lambda: _computed(study, factors, seeds, keep.tells))


def _computed(study: lab.Study, factors: Mapping[str, Sequence[Any]], seeds: int, progress: bool) -> tm.Trajectory:
    status = study.run(progress=progress)
    if status.failed:
        failure = study.failures()[0]
        raise RuntimeError(f"{status.failed} of {status.total} cells failed, first: {failure}")
    return _as_run(study, factors, seeds)


def cell_seconds(study: lab.Study) -> list[float]:
    """What every complete cell took, in the order of `results`."""
    places = [study.places.result(cell.key) / CELL for cell in study.all_cells]
    return [float(json.loads(place.read_bytes())["seconds"]) for place in places if place.exists()]


def _as_run(study: lab.Study, factors: Mapping[str, Sequence[Any]], seeds: int) -> tm.Trajectory:
    table = study.table()
    curves = {}
    for variable in table.data_vars:
        array = table[variable]
        moments = array.sizes.get("moment", 1)
        array = array.rename(moment="time") if "moment" in array.dims else array.expand_dims("time")
        inner = [dim for dim in array.dims if dim != "time"]
        curves[str(variable)] = array.transpose("time", *inner).assign_coords(time=np.arange(moments))
    settings: dict[str, Any] = {
        "cell": study.reference.text,
        "factors": {key: list(values) for key, values in factors.items()},
    }
    return tm.Trajectory(curves, "t", tm.record.Origin("study", settings=settings, seeds=tuple(range(seeds))))


def with_results(array: xr.DataArray, factors: Sequence[str]) -> xr.DataArray:
    """Without the levels of which no cell has a value, such as a network that cannot learn the task at all."""
    for factor in factors:
        others = [dim for dim in array.dims if dim != factor]
        array = array.sel({factor: array.notnull().any(others).values})
    return array
