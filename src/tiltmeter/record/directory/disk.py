"""Disk: a run directory that a recorder writes to, readable after every evaluation."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.record.contents import Contents, PointColumn, Progress
from tiltmeter.record.directory.atomic_files import (
    ASIDE,
    aside_of,
    explained,
    make_folder,
    remove_left_over,
    sync_folder,
)
from tiltmeter.record.directory.journal import ARRAYS, CURVES, as_ranges, stop, store
from tiltmeter.record.directory.lines import Lines
from tiltmeter.record.directory.lock import Lock, busy, live_writer, writer
from tiltmeter.record.directory.point_records import POINTS, RecordWriter, encode
from tiltmeter.record.directory.reader import read_run
from tiltmeter.record.directory.small_files import (
    END,
    LOCK,
    RUN,
    End,
    Ending,
    TrajectoryHeader,
    read_header,
    write_end,
    write_header,
)
from tiltmeter.record.labelled import JSON, array_to_json
from tiltmeter.record.layout import Layout, Time
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import quoted, warn_caller


def agree(directory: Path, known: TrajectoryHeader, found: TrajectoryHeader) -> None:
    """Raise a ValueError that names the first difference between two descriptions of a run."""
    if known.clock != found.clock:
        raise ValueError(f'{directory} counts time in "{known.clock}". Found clock = "{found.clock}".')
    old, new = known.origin.to_json(), found.origin.to_json()
    for part in old:
        # A run may be continued after an upgrade; its file keeps the first version.
        if part != "version" and old[part] != new[part]:
            place, was, now = _first_difference(part, old[part], new[part])
            raise ValueError(
                f"{directory} has another origin: `{place}` was {was} and is now {now}. "
                "Resume it with the origin it began with, or choose a new name."
            )


def _first_difference(place: str, old: JSON, new: JSON) -> tuple[str, str, str]:
    """Return the path of the first difference between two descriptions, and both values.

    >>> _first_difference("recipe", {"lr": 0.1, "batch": {"size": 8}}, {"lr": 0.1, "batch": {"size": 9}})
    ('recipe.batch.size', '8', '9')
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            if key not in old or key not in new:
                was, now = (quoted(one[key], 200) if key in one else "not set" for one in (old, new))
                return f"{place}.{key}", was, now
            if old[key] != new[key]:
                return _first_difference(f"{place}.{key}", old[key], new[key])
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            if one != other:
                return _first_difference(f"{place}[{number}]", one, other)
    return place, quoted(old, 200), quoted(new, 200)


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """Give a directory to write into, which gets its name at the end; what exists is never overwritten.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with new_directory(Path(folder) / "mine") as place:
    ...         _ = (place / "note.txt").write_text("whole")
    ...     (Path(folder) / "mine" / "note.txt").read_text()
    'whole'
    """
    if os.path.lexists(target):
        raise FileExistsError(f"{target} already exists and is never overwritten. Choose a new name.")
    aside = aside_of(target.with_name(f".{target.name}"))
    try:
        make_folder(target.parent)
        remove_left_over(target.parent)
        aside.mkdir()
        yield aside
        sync_folder(aside)
        os.rename(aside, target)
        sync_folder(target.parent)
    except OSError as error:
        raise explained(error, f"{target} could not be written: ", " Nothing was left there.") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


class Disk:
    """The writing end of one run directory, under its lock from construction to `end`."""

    def __init__(self, directory: Path, header: TrajectoryHeader, resume: bool) -> None:
        self._directory = directory
        self._header = header
        self._writers: dict[str, RecordWriter] = {}
        # Checked first without the lock, so that a refused directory is not changed.
        holder = live_writer(directory / LOCK)
        if holder is not None:
            raise BlockingIOError(busy(directory / LOCK, holder))
        if holds_run(directory, resume):
            _refuse_links(directory)
        make_folder(directory)
        self._lock = Lock(directory / LOCK)
        try:
            self._remember(self._continue() if holds_run(directory, resume) else self._begin())
        except BaseException:
            self._lock.release()
            raise
        self._known_end: int | None = self._lines.end

    def _begin(self) -> Contents:
        remove_left_over(self._directory)
        self._lines = Lines(self._directory / CURVES)
        try:
            # Last, because this file makes the directory a run.
            write_header(self._directory, self._header)
        except BaseException:
            self._lines.close()
            raise
        return Contents(stop(self._directory))

    def _continue(self) -> Contents:
        known = read_header(self._directory)
        if not isinstance(known, TrajectoryHeader):
            raise ValueError(f"{self._directory} holds a dataset, which cannot be resumed. Choose a new name.")
        agree(self._directory, known, self._header)
        run = read_run(self._directory)
        if run.account is not None:
            warn_caller(run.account)
        self._header = known
        for folder in (self._directory, self._directory / ARRAYS):
            if folder.is_dir():
                remove_left_over(folder)
        # No longer finished, before anything is added; and nothing is added behind what was not on the disk.
        (self._directory / END).unlink(missing_ok=True)
        sync_folder(self._directory)
        self._lines = Lines(self._directory / CURVES)
        try:
            self._lines.cut(run.bytes)
            self._lines.sync()
        except BaseException:
            self._lines.close()
            raise
        return run.contents

    def _remember(self, contents: Contents) -> None:
        self.progress: Progress = contents.progress()
        self._points = dict(contents.points)
        known = [int(file.partition(".")[0]) + 1 for file in contents.point_files]
        self._next_file = max([0, *known])

    @property
    def mine(self) -> bool:
        """False in a process forked from the one that records."""
        return self._lock.mine

    def sync(self) -> None:
        """Have everything recorded so far on the disk."""
        for records in self._writers.values():
            records.sync()
        self._lines.sync()

    def evaluate(
        self,
        time: Time,
        fresh: Mapping[str, Layout],
        values: Mapping[str, np.ndarray],
        fresh_points: Mapping[str, Layout],
        points: Mapping[str, np.ndarray],
    ) -> None:
        start = self._own()
        stored = {name: store(self._directory, start, slot, array) for slot, (name, array) in enumerate(values.items())}
        entry: dict[str, Any] = {"kind": "evaluation", "time": time}
        if fresh:
            entry["layouts"] = {name: layout.to_json() for name, layout in fresh.items()}
        entry["values"] = stored
        if fresh_points:
            new = {name: self._column(name, layout) for name, layout in fresh_points.items()}
            entry["point_layouts"] = {
                name: {"file": column.file, "layout": column.layout.to_json()} for name, column in new.items()
            }
        if points:
            entry["points"] = {name: self._keep(self._points[name], array) for name, array in points.items()}
        self._write(entry)

    def diverge(self, at: xr.DataArray) -> None:
        self._own()
        self._write({"kind": "diverged", "at": array_to_json(at)})

    def leave_out(self, times: list[Time], batch: int | None) -> None:
        self._own()
        self._write({"kind": "left_out", "steps": as_ranges(times), "batch": batch})

    def accept_missing(self, until: Time) -> None:
        self._own()
        self._write({"kind": "missing", "until": until})

    def rewind(self, last: Time | None) -> None:
        self._own()
        self._write({"kind": "rewind", "to": last})
        self._remember(read_run(self._directory).contents)

    def trajectory(self) -> Trajectory:
        return read_run(self._directory).trajectory

    def end(self, state: Ending, reason: str | None, diverged: xr.DataArray | None) -> None:
        try:
            self._own()
            self.sync()
            at = None if diverged is None else array_to_json(diverged)
            write_end(self._directory, End(state, self._lines.end, reason, at))
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Release the directory without marking the run as ended."""
        for records in self._writers.values():
            records.close()
        self._writers.clear()
        self._lines.close()
        self._lock.release()

    def __str__(self) -> str:
        return str(self._directory)

    def _column(self, name: str, layout: Layout) -> PointColumn:
        """Return the records of points that no line describes yet; the same ones if that line failed."""
        column = self._points.get(name)
        if column is None or column.layout != layout:
            column = self._points[name] = PointColumn(name, layout, f"{self._next_file}.bin")
            self._next_file += 1
        return column

    def _keep(self, column: PointColumn, array: np.ndarray) -> dict[str, JSON]:
        # Counted first: after an interrupt a record may be lost, but none that a line names is overwritten.
        record, column.free = column.free, column.free + 1
        if column.file not in self._writers:
            self._writers[column.file] = RecordWriter(self._directory / POINTS / column.file)
        return {"record": record, "crc": f"{self._writers[column.file].write(record, encode(array)):08x}"}

    def _write(self, entry: Mapping[str, Any]) -> None:
        """Write one line; acknowledge it only if the file is still in place."""
        self._known_end = None  # unknown if an interrupt comes
        self._lines.append(entry)
        end = self._lines.end_in_place()
        if end is None or any(records.deleted() for records in self._writers.values()):
            raise self._gone()
        self._known_end = end

    def _own(self) -> int:
        """The byte where the lines end; raise an error unless this is still the only writer of these files."""
        end = self._lines.end_in_place()
        if end is None:
            raise self._gone()
        if self._lock.held():
            return end
        other = writer(self._directory / LOCK)
        if other is None and self._known_end in (None, end):
            self._lock.take()  # deleted by hand, and nobody has written since
            return end
        raise Taken("another process" if other is None else str(other))

    def _gone(self) -> Gone:
        deleted = self._lines.deleted() or any(records.deleted() for records in self._writers.values())
        return Gone("its files were deleted while it was recorded" if deleted else "it was moved while it was recorded")


class Gone(FileNotFoundError):
    """The files of the run are no longer where they were."""


class Taken(BlockingIOError):
    """Another writer has taken the run over."""

    def __init__(self, by: str) -> None:
        super().__init__(f"{by} has taken the run over")


def holds_run(directory: Path, resume: bool) -> bool:
    """Whether there is a run to continue; FileExistsError where none may start."""
    if not os.path.lexists(directory):
        return False
    if not directory.is_dir():
        raise FileExistsError(f"`to` should name a directory. Found a file at {directory}. Choose a new name.")
    if (directory / RUN).exists():
        if not resume:
            raise FileExistsError(
                f"{directory} already holds a run, which is never overwritten. "
                "Choose a new name, or continue the run with `resume=True`."
            )
        return True
    foreign = sorted(entry.name for entry in directory.iterdir() if not _left_over(entry))
    if foreign:
        raise FileExistsError(f"{directory} is not empty and holds no run: there is {foreign[0]!r}. Choose a new name.")
    return False


def _refuse_links(directory: Path) -> None:
    """A run is continued in its own files only: a link in a stranger's folder may point to anything of the user's."""
    for entry in (*directory.iterdir(), *(directory / ARRAYS).glob("*"), *(directory / POINTS).glob("*")):
        if entry.is_symlink():
            raise ValueError(
                f"{entry} is a link, and continuing the run would write to where it points. Copy the folder first, "
                "with the files in place of links."
            )


def _left_over(entry: Path) -> bool:
    """Whether a writer that died before its run began may have left this."""
    if entry.name == LOCK:
        return not entry.read_bytes().strip(b"\0") or writer(entry) is not None
    return (entry.name.startswith(RUN) and entry.name.endswith(ASIDE)) or (
        entry.name == CURVES and entry.stat().st_size == 0
    )
