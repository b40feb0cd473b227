"""Save and load: trajectories and datasets as run directories."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import xarray as xr

from tiltmeter.arguments import checked_path
from tiltmeter.record.directory.disk import new_directory
from tiltmeter.record.directory.journal import CURVES, store
from tiltmeter.record.directory.lines import Lines
from tiltmeter.record.directory.point_records import POINTS, RecordWriter, encode
from tiltmeter.record.directory.reader import read_run
from tiltmeter.record.directory.small_files import (
    DatasetHeader,
    End,
    TrajectoryHeader,
    write_end,
    write_header,
)
from tiltmeter.record.labelled import JSON, array_to_json, coords_of
from tiltmeter.record.layout import Layout, plain
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import warn_caller


def save(what: Trajectory | xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Write a trajectory, or a dataset, as a new run directory: completely, or not at all.

    >>> from tempfile import TemporaryDirectory
    >>> from tiltmeter import predict
    >>> from tiltmeter.theory import cases
    >>> run = predict(*cases.centred_crossing(), curves=("loss",))
    >>> with TemporaryDirectory() as folder:
    ...     save(run, f"{folder}/mine")
    ...     load(f"{folder}/mine") == run
    True

    Existing files are never overwritten. The points of a trajectory are stored with it; its `evaluate` is not.

    Args:
        what: Trajectory or dataset to store.
        path: New run directory.
    """
    if not isinstance(what, (Trajectory, xr.Dataset)):
        raise TypeError(f"`save` takes a Trajectory or an xarray.Dataset. Found {type(what).__name__}.")
    with new_directory(checked_path("path", path)) as aside:
        _write(what, aside)


def load(path: str | os.PathLike[str]) -> Trajectory | xr.Dataset:
    """Read a run directory, whether the run ended, is going on or died; return a Trajectory, or the Dataset saved.

    >>> try:
    ...     load("runs/nowhere")
    ... except FileNotFoundError as error:
    ...     print(error)
    `path` should be a run directory. Found nothing at runs/nowhere.

    A finished run is whole to its last byte, or it is an error that names the damage. Of a run that is going on or died
    the longest part counts whose lines, arrays and points all verify; a warning says what was dropped behind it. (The
    torn last line of a killed writer was never acknowledged and is dropped without a word.) Points stay in their files
    until they are used, so do not move the directory while they are needed.

    Args:
        path: Run directory.
    """
    run = read_run(checked_path("path", path))
    if run.account is not None:
        warn_caller(run.account)
    if isinstance(run.header, DatasetHeader):
        return run.contents.dataset(run.header.attrs)
    return run.trajectory


def _write(what: Trajectory | xr.Dataset, directory: Path) -> None:
    header: TrajectoryHeader | DatasetHeader
    lines = Lines(directory / CURVES)
    try:
        diverged: JSON = None
        if isinstance(what, Trajectory):
            header = TrajectoryHeader(what.clock, what.origin)
            for name, curve in what.items():
                _append(lines, directory, "curve", name, curve)
            for slot, name in enumerate(what.points):
                _append_points(lines, directory, slot, name, what.points[name])
            if what.diverged is not None:
                diverged = array_to_json(what.diverged)
                lines.append({"kind": "diverged", "at": diverged})
        else:
            header = DatasetHeader(plain(what.attrs))
            coords = {name: labels.to_json(name) for name, labels in coords_of(what).items()}
            lines.append({"kind": "coords", "coords": coords, "sizes": dict(what.sizes)})
            for variable, array in what.data_vars.items():
                _append(lines, directory, "array", str(variable), array.drop_vars(list(array.coords)))
        lines.sync()
        write_end(directory, End("finished", lines.end, diverged=diverged))
    finally:
        lines.close()
    write_header(directory, header)


def _append(lines: Lines, directory: Path, kind: str, name: str, array: xr.DataArray) -> None:
    described = Layout.of(name, array).to_json()
    values = store(directory, lines.end, 0, np.asarray(array.values))
    lines.append({"kind": kind, "name": name, "layout": described, "values": values})


def _append_points(lines: Lines, directory: Path, slot: int, name: str, array: xr.DataArray) -> None:
    file = f"{slot}.bin"
    records = RecordWriter(directory / POINTS / file)
    try:
        checksums = [f"{records.write(k, encode(values)):08x}" for k, values in enumerate(array.values)]
        records.sync()
    finally:
        records.close()
    described = Layout.of(name, array).to_json()
    lines.append({"kind": "points", "name": name, "layout": described, "file": file, "checksums": checksums})
