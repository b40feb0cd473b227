"""Disk: a run directory as the place a recorder writes to, readable after every look."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tiltmeter.record.directory.contents import Contents
from tiltmeter.record.directory.journal import CURVES, read, stop, store
from tiltmeter.record.directory.layout import Layout, Time
from tiltmeter.record.directory.lines import Lines
from tiltmeter.record.directory.lock import Lock, busy, writer
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
from tiltmeter.record.labelled import JSON
from tiltmeter.record.trajectory import Trajectory


class Disk:
    """The writing end of one run directory, under its lock from construction to `end`."""

    def __init__(self, directory: Path, header: TrajectoryHeader, resume: bool) -> None:
        self._directory = directory
        self._header = header
        # Asked first without the lock, so that a directory that is refused is left as it was.
        holder = writer(directory / LOCK)
        if holder is not None and holder.alive():
            raise BlockingIOError(busy(directory / LOCK, holder))
        holds_run(directory, resume)
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(directory / LOCK)
        try:
            start = self._continue() if holds_run(directory, resume) else self._begin()
        except BaseException:
            self._lock.release()
            raise
        self.layouts, self.last_time, self.looks = start.layouts, start.last_time, start.looks
        self.diverged = start.diverged

    def _begin(self) -> Contents:
        self._lines = Lines(self._directory / CURVES)
        try:
            # Last, since it is what makes the directory a run.
            write_header(self._directory, self._header)
        except BaseException:
            self._lines.close()
            raise
        return Contents(stop(self._directory))

    def _continue(self) -> Contents:
        known = read_header(self._directory)
        if not isinstance(known, TrajectoryHeader):
            raise ValueError(f"{self._directory} holds a dataset, which cannot be resumed. Choose a new name.")
        _agree(self._directory, known, self._header)
        contents, end = read(self._directory, stop(self._directory))
        contents.gather()  # whoever continues a damaged run should know at once
        self._lines = Lines(self._directory / CURVES)
        self._lines.cut(end)
        (self._directory / END).unlink(missing_ok=True)
        return contents

    @property
    def mine(self) -> bool:
        """False in a process forked from the one that records."""
        return self._lock.mine

    def look(self, time: Time, fresh: Mapping[str, Layout], values: Mapping[str, np.ndarray]) -> None:
        start = self._lines.end
        stored = {name: store(self._directory, start, slot, array) for slot, (name, array) in enumerate(values.items())}
        layouts = {"layouts": fresh} if fresh else {}
        self._lines.append({"kind": "look", "time": time, **layouts, "values": stored})

    def diverge(self, at: dict[str, JSON]) -> None:
        self._lines.append({"kind": "diverged", "at": at})

    def trajectory(self) -> Trajectory:
        contents, _ = read(self._directory, stop(self._directory))
        return contents.trajectory(self._header.clock, self._header.origin)

    def end(self, state: Ending, reason: str | None, diverged: JSON) -> None:
        try:
            write_end(self._directory, End(state, self._lines.end, reason, diverged))
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the directory without saying that the run ended."""
        self._lines.close()
        self._lock.release()

    def __str__(self) -> str:
        return str(self._directory)


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


def _left_over(entry: Path) -> bool:
    """Whether a writer that died before its run began may have left this."""
    if entry.name == LOCK:
        return entry.stat().st_size == 0 or writer(entry) is not None
    return entry.name == f"{RUN}.aside" or (entry.name == CURVES and entry.stat().st_size == 0)


def _agree(directory: Path, known: TrajectoryHeader, found: TrajectoryHeader) -> None:
    if known.clock != found.clock:
        raise ValueError(f'{directory} counts time in "{known.clock}". Found clock = "{found.clock}".')
    old, new = known.origin.to_json(), found.origin.to_json()
    for part in old:
        # An upgrade of the code in between is no reason to lose a long run; its file keeps the version it began with.
        if part != "version" and old[part] != new[part]:
            place, was, now = _first_difference(part, old[part], new[part])
            raise ValueError(
                f"{directory} has another origin: `{place}` was {was} and is now {now}. "
                "Resume it with the origin it began with, or choose a new name."
            )


def _first_difference(place: str, old: JSON, new: JSON) -> tuple[str, str, str]:
    """Where two descriptions differ first, as settings.recipe.batch, and what stands there in each."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            if key not in old or key not in new:
                was, now = (_short(one[key]) if key in one else "not set" for one in (old, new))
                return f"{place}.{key}", was, now
            if old[key] != new[key]:
                return _first_difference(f"{place}.{key}", old[key], new[key])
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            if one != other:
                return _first_difference(f"{place}[{number}]", one, other)
    return place, _short(old), _short(new)


def _short(value: JSON) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."
