"""Follow: a run directory read while it grows, each time only what was added."""

from __future__ import annotations

import os
from pathlib import Path

from tiltmeter.record.directory.contents import Contents
from tiltmeter.record.directory.journal import CURVES, read_on, stop
from tiltmeter.record.directory.small_files import RUN, DatasetHeader, read_header
from tiltmeter.record.points import Points
from tiltmeter.record.trajectory import Trajectory


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
                    self._contents, self.directory, stop(self.directory), self._header.unchecked, self._lines, before
                )
            except BaseException:
                self._known = None
                raise
        return self.bytes > before

    @property
    def looks(self) -> int:
        return self._contents.looks

    @property
    def trajectory(self) -> Trajectory:
        """Everything so far, without the points beside the curves: those of a growing run are read by `load`."""
        return self._contents.trajectory(self._header.clock, self._header.origin, Points({}))
