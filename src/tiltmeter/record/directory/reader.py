"""Reader: the one function that reads a run directory, for load, check, resume, the gate, rows and the explorer.

A run is *whole* (it ended, and everything is there to its last byte), it is running or *died* (then the longest prefix
counts whose lines, arrays and records all verify, and it is said what was dropped), or it is *damaged*, which is an
error that names the place.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from tiltmeter.record.contents import Contents, Problem
from tiltmeter.record.directory.atomic_files import open_file
from tiltmeter.record.directory.journal import CURVES, BadLine, StopReading, read_on, stop
from tiltmeter.record.directory.lock import live_writer
from tiltmeter.record.directory.point_records import first_damaged, stored_points
from tiltmeter.record.directory.small_files import (
    END,
    LOCK,
    RUN,
    DatasetHeader,
    End,
    Ending,
    TrajectoryHeader,
    read_end,
    read_header,
)
from tiltmeter.record.points import Points
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import NotebookText, shortened

State: TypeAlias = Ending | Literal["running", "died", "unknown"]

#: How often a run is read again that changes its end while it is read.
TRIES = 5


@dataclass(frozen=True)
class Dropped(NotebookText):
    """What does not verify at the end of a run that did not end: the first line, how many, and why."""

    first: int
    lines: int
    fact: str

    def __str__(self) -> str:
        count = "1 line" if self.lines == 1 else f"{self.lines:,} lines"
        return f"{count} dropped, from line {self.first} of {CURVES} on: {self.fact.rstrip('.')}"


class RunReader:
    """The reading end of one run directory.

    >>> import numpy as np, xarray as xr
    >>> from tempfile import TemporaryDirectory
    >>> from tiltmeter.record import Origin, Recorder
    >>> runs = TemporaryDirectory()
    >>> recorder = Recorder(f"{runs.name}/mine", clock="step", origin=Origin("example"))
    >>> recorder.append(1, {"risk": xr.DataArray(0.5)})
    >>> run = RunReader(Path(runs.name) / "mine")
    >>> run.update(), run.update(), run.trajectory["risk"].values.tolist()
    (True, False, [0.5])
    >>> recorder.append(2, {"risk": xr.DataArray(0.25)})
    >>> run.update(), run.trajectory["risk"].values.tolist()
    (True, [0.5, 0.25])
    >>> recorder.close(); runs.cleanup()

    What does not verify in a run that is not finished waits until it does. Where the file was replaced or cut, all is
    read again. Damage raises at every update, until the file is another one, or goes to `hear` with the number of its
    line.
    """

    header: TrajectoryHeader | DatasetHeader

    def __init__(self, directory: Path, hear: Problem | None = None) -> None:
        self.directory = directory
        self._tell = stop(directory) if hear is None else hear
        self._raises = hear is None
        self._known: tuple[int, ...] | None = None
        self.end: End | None = None
        self.dropped: Dropped | None = None
        self._forget()

    def _forget(self) -> None:
        self.contents, self._lines, self.bytes = Contents(self._tell), 0, 0

    def update(self) -> bool:
        """Read what was added; whether anything is different now."""
        before = self.bytes, self.dropped, self.end
        try:
            for _ in range(TRIES):
                self.end = read_end(self.directory)
                size = self._size()
                self._read(size)
                # A finished run may be resumed while it is read, or another one may end.
                if self.end == read_end(self.directory):
                    break
                self._forget()
            if self.end is not None:
                self.contents.gather()  # values that do not fit their layout name their line
                self._check_end(self.end, size)
        except BaseException:
            self._known = None
            raise
        return before != (self.bytes, self.dropped, self.end)

    def _size(self) -> int:
        """The bytes of the file of lines; whatever was read of another run under this name is forgotten."""
        if self._known is None or not (self.directory / RUN).exists():
            self.header = read_header(self.directory)
        header = os.stat(self.directory / RUN)
        try:
            curves = os.stat(self.directory / CURVES)
        except FileNotFoundError:
            raise ValueError(f"{self.directory} is damaged: its {CURVES} is missing.") from None
        if not stat.S_ISREG(curves.st_mode):
            open_file(self.directory / CURVES).close()  # raises
        # Numbers of deleted files are used again: the date of `run.json` tells one run from the next.
        # A finished file is not written to any more.
        file = curves.st_ino, header.st_ino, header.st_mtime_ns, 0 if self.end is None else curves.st_mtime_ns
        if file != self._known or curves.st_size < self.bytes:
            self.header, self._known = read_header(self.directory), file
            self._forget()
        return curves.st_size

    def _read(self, size: int) -> None:
        self.dropped = None
        if self.end is not None:
            if size > self.bytes:
                self._lines, self.bytes = read_on(self.contents, self.directory, self._tell, self._lines, self.bytes)
            for column in self.contents.points.values():
                damage = first_damaged(column, self.directory)
                if damage is not None:
                    self._tell(*damage)
            return
        reasons: dict[int, str] = {}

        def note(line: int, fact: str) -> None:
            reasons[line] = fact
            raise StopReading

        if size > self.bytes:
            self._lines, self.bytes = read_on(self.contents, self.directory, note, self._lines, self.bytes)
        while damaged := self._first_damaged_record():
            line, fact = damaged
            reasons[line] = fact
            self._forget()
            self._lines, self.bytes = read_on(self.contents, self.directory, note, most=line - 1)
        self.dropped = self._rest(reasons.get(self._lines + 1))

    def _first_damaged_record(self) -> tuple[int, str] | None:
        found = [first_damaged(column, self.directory) for column in self.contents.points.values()]
        return min((one for one in found if one is not None), default=None)

    def _rest(self, fact: str | None) -> Dropped | None:
        """What follows the prefix that counts. The torn line of a killed writer was never acknowledged: not a word."""
        with open_file(self.directory / CURVES) as file:
            file.seek(self.bytes)
            rest = file.read()
        if not rest or (fact is None and b"\n" not in rest and b"\0" not in rest):
            return None
        lines = rest.count(b"\n") + (not rest.endswith(b"\n"))
        if fact is None:
            fact = "its bytes are empty: they were not on the disk when the power was cut"
        return Dropped(self._lines + 1, lines, fact)

    def _check_end(self, end: End, size: int) -> None:
        if size == self.bytes == end.bytes:
            return
        fact = f"{CURVES} has {size} bytes where {END} says {end.bytes}"
        if size == end.bytes:
            fact = f"the last line of {CURVES} is not whole"
        if not self._raises:
            self._tell(0, fact)
            return
        raise ValueError(
            f"{self.directory} is damaged: {fact}. The run had ended, so evaluations are missing or changed. Delete "
            f"{END} to treat it as one that died."
        )

    @property
    def state(self) -> State:
        """How the run ended; "running" or "died" if it did not."""
        if self.end is not None:
            return self.end.state
        if live_writer(self.directory / LOCK) is not None:
            return "running"
        end = read_end(self.directory)  # the writer may have ended the run since it was read
        return "died" if end is None else end.state

    @property
    def evaluations(self) -> int:
        return self.contents.evaluations

    @property
    def trajectory(self) -> Trajectory:
        """Everything so far; points are read when they are asked for."""
        if isinstance(self.header, DatasetHeader):
            raise ValueError(f"{self.directory} holds a dataset, which has no curves over time.")
        points = Points({name: stored_points(one, self.directory) for name, one in self.contents.points.items()})
        return self.contents.trajectory(self.header.clock, self.header.origin, points)

    @property
    def account(self) -> str | None:
        """What was dropped, in a sentence; None if nothing was."""
        if self.dropped is None:
            return None
        count = "1 evaluation" if self.evaluations == 1 else f"{self.evaluations:,} evaluations"
        return f"{self.directory} is not finished: {self.dropped}. What is before them is whole: {count}."


def read_run(directory: Path) -> RunReader:
    """Read a run directory, to the last byte where it is finished; a ValueError says how it is damaged."""
    reader = RunReader(directory)
    try:
        reader.update()
        reader.contents.gather()
    except BadLine:
        raise
    except (ValueError, TypeError) as error:
        if str(directory) in str(error):
            raise  # already a sentence
        fact = shortened(str(error)).rstrip(".")
        raise ValueError(f"{directory} is damaged: its parts do not fit together. {fact}.") from None
    return reader
