"""Save and load: trajectories and datasets as run directories."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import xarray as xr

from tiltmeter.record.directory.disk import read_trajectory
from tiltmeter.record.directory.journal import CURVES, BadLine, read, stop, store
from tiltmeter.record.directory.layout import layout, plain
from tiltmeter.record.directory.lines import Lines
from tiltmeter.record.directory.new_directory import new_directory
from tiltmeter.record.directory.point_records import POINTS, RecordWriter, encode
from tiltmeter.record.directory.small_files import (
    DatasetHeader,
    End,
    TrajectoryHeader,
    read_end,
    read_header,
    write_end,
    write_header,
)
from tiltmeter.record.labelled import JSON, array_to_json, coords_to_json
from tiltmeter.record.quoted import shortened
from tiltmeter.record.trajectory import Trajectory


def save(what: Trajectory | xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Write a trajectory, or a dataset, as a new run directory: completely, or not at all.

    >>> from tempfile import TemporaryDirectory
    >>> from tiltmeter import cases, predict
    >>> run = predict(*cases.centred_crossing(), curves=("loss",))
    >>> with TemporaryDirectory() as folder:
    ...     save(run, f"{folder}/mine")
    ...     load(f"{folder}/mine") == run
    True

    Existing files are never overwritten. The points of a trajectory are stored with it; its `evaluate` is not.
    """
    if not isinstance(what, (Trajectory, xr.Dataset)):
        raise TypeError(f"`save` takes a Trajectory or an xarray.Dataset. Found {type(what).__name__}.")
    with new_directory(Path(path)) as aside:
        _write(what, aside)


def load(path: str | os.PathLike[str]) -> Trajectory | xr.Dataset:
    """Read a run directory, whether the run ended, is going on or died; return a Trajectory, or the Dataset saved.

    >>> try:
    ...     load("runs/nowhere")
    ... except FileNotFoundError as error:
    ...     print(error)
    `path` should be a run directory. Found nothing at runs/nowhere.

    An incomplete last line, as a killed writer leaves it, is dropped. Any other damage is an error that names it.
    Points stay in their files until they are used, so do not move the directory while they are needed.
    """
    directory = Path(path)
    header = read_header(directory)
    # Read only to detect damage.
    read_end(directory, sealed=header.unchecked == 0)
    try:
        if isinstance(header, TrajectoryHeader):
            return read_trajectory(directory, header)
        contents, _ = read(directory, stop(directory), header.unchecked)
        return contents.dataset(header.attrs)
    except BadLine:
        raise
    except (ValueError, TypeError) as error:
        if str(directory) in str(error):
            raise  # already a sentence
        fact = shortened(str(error)).rstrip(".")
        raise ValueError(f"{directory} is damaged: its parts do not fit together. {fact}.") from None


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
            lines.append({"kind": "coords", "coords": coords_to_json(what), "sizes": dict(what.sizes)})
            for variable, array in what.data_vars.items():
                _append(lines, directory, "array", str(variable), array.drop_vars(list(array.coords)))
        write_end(directory, End("finished", lines.end, diverged=diverged))
    finally:
        lines.close()
    write_header(directory, header)


def _append(lines: Lines, directory: Path, kind: str, name: str, array: xr.DataArray) -> None:
    described = layout(name, array)
    values = store(directory, lines.end, 0, np.asarray(array.values))
    lines.append({"kind": kind, "name": name, "layout": described, "values": values})


def _append_points(lines: Lines, directory: Path, slot: int, name: str, array: xr.DataArray) -> None:
    file = f"{slot}.bin"
    records = RecordWriter(directory / POINTS / file)
    try:
        checksums = [f"{records.write(k, encode(values)):08x}" for k, values in enumerate(array.values)]
    finally:
        records.close()
    lines.append({"kind": "points", "name": name, "layout": layout(name, array), "file": file, "checksums": checksums})
