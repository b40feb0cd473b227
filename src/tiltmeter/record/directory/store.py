"""Save and load: trajectories and datasets as run directories."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import xarray as xr

from tiltmeter.arguments import checked_path
from tiltmeter.record.contents import Contents
from tiltmeter.record.directory.disk import new_directory, read_trajectory
from tiltmeter.record.directory.journal import CURVES, BadLine, read, read_on, stop, store
from tiltmeter.record.directory.lines import Lines
from tiltmeter.record.directory.point_records import POINTS, RecordWriter, encode
from tiltmeter.record.directory.small_files import (
    RUN,
    DatasetHeader,
    End,
    TrajectoryHeader,
    read_end,
    read_header,
    write_end,
    write_header,
)
from tiltmeter.record.labelled import JSON, array_to_json, coords_of
from tiltmeter.record.layout import Layout, plain
from tiltmeter.record.points import Points
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import shortened


class Following:
    """The reading end of one run directory.

    >>> import numpy as np, xarray as xr
    >>> from tempfile import TemporaryDirectory
    >>> from tiltmeter.record import Origin, Recorder
    >>> runs = TemporaryDirectory()
    >>> recorder = Recorder(f"{runs.name}/mine", clock="step", origin=Origin("example"))
    >>> recorder.append(1, {"risk": xr.DataArray(0.5)})
    >>> run = Following(Path(runs.name) / "mine")
    >>> run.update(), run.update(), run.trajectory["risk"].values.tolist()
    (True, False, [0.5])
    >>> recorder.append(2, {"risk": xr.DataArray(0.25)})
    >>> run.update(), run.trajectory["risk"].values.tolist()
    (True, [0.5, 0.25])
    >>> recorder.close(); runs.cleanup()

    A torn last line waits until it is whole. Where the file was replaced or cut, all is read again. Damage raises at
    every update, as in `load`, until the file is another one.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._known: tuple[int, int, int] | None = None
        self._forget()

    def _forget(self) -> None:
        self._contents, self._lines, self.bytes = Contents(stop(self.directory)), 0, 0

    def update(self) -> bool:
        """Read what was added; whether there was anything."""
        status, header_status = os.stat(self.directory / CURVES), os.stat(self.directory / RUN)
        # Numbers of deleted files are used again: the date of `run.json` tells one run from the next.
        file = status.st_ino, header_status.st_ino, header_status.st_mtime_ns
        if file != self._known or status.st_size < self.bytes:
            header = read_header(self.directory)
            if isinstance(header, DatasetHeader):
                raise ValueError(f"{self.directory} holds a dataset, which has no curves over time.")
            self._header, self._known = header, file
            self._forget()
        before = self.bytes
        if status.st_size > before:
            try:
                self._lines, self.bytes = read_on(
                    self._contents, self.directory, stop(self.directory), self._lines, before
                )
            except BaseException:
                self._known = None
                raise
        return self.bytes > before

    @property
    def evaluations(self) -> int:
        return self._contents.evaluations

    @property
    def trajectory(self) -> Trajectory:
        """Everything so far, without the points beside the curves: those of a growing run are read by `load`."""
        return self._contents.trajectory(self._header.clock, self._header.origin, Points({}))


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

    An incomplete last line, as a killed writer leaves it, is dropped. Any other damage is an error that names it.
    Points stay in their files until they are used, so do not move the directory while they are needed.

    Args:
        path: Run directory.
    """
    directory = checked_path("path", path)
    header = read_header(directory)
    # Read only to detect damage.
    read_end(directory)
    try:
        if isinstance(header, TrajectoryHeader):
            return read_trajectory(directory, header)
        contents, _ = read(directory, stop(directory))
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
            coords = {name: labels.to_json(name) for name, labels in coords_of(what).items()}
            lines.append({"kind": "coords", "coords": coords, "sizes": dict(what.sizes)})
            for variable, array in what.data_vars.items():
                _append(lines, directory, "array", str(variable), array.drop_vars(list(array.coords)))
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
    finally:
        records.close()
    described = Layout.of(name, array).to_json()
    lines.append({"kind": "points", "name": name, "layout": described, "file": file, "checksums": checksums})
