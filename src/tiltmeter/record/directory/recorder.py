"""Recorder: looks at a run in, a trajectory out; what was recorded survives whatever happens next."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import xarray as xr

from tiltmeter.record.directory.atomic_files import explained
from tiltmeter.record.directory.contents import usable
from tiltmeter.record.directory.disk import Disk
from tiltmeter.record.directory.layout import Time, build, difference, reading
from tiltmeter.record.directory.memory import Memory
from tiltmeter.record.directory.small_files import Ending, TrajectoryHeader
from tiltmeter.record.labelled import array_to_json
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Clock, Trajectory


class Recorder:
    """Records the curves of one run, in memory (`to=None`) or in a run directory, look by look.

    Once `append` has returned, the look is with the operating system: killing the process loses nothing. Leaving
    the `with` block says how the run ended: finished, failed (with the reason) or interrupted.

    >>> with Recorder(to=None, clock="step", origin=Origin("example")) as recorder:
    ...     for step in range(0, 30, 10):
    ...         recorder.append(step, {"loss": 1 / (1 + step)})
    ...     recorder.append(30, {"loss": 1 / 31, "sharpness": 2.0})
    >>> recorder.trajectory()
    <Trajectory example, clock step, 2 curves>
      loss       (time: 4)  time 0 .. 30
      sharpness  (time: 1)  time 30 .. 30

    A directory that already holds a run is refused, unless `resume=True` says to continue after its last look.
    """

    def __init__(
        self, to: str | os.PathLike[str] | None, *, clock: Clock, origin: Origin, resume: bool = False
    ) -> None:
        Trajectory({}, clock, origin)  # the same sentences for a bad clock or origin, before anything is created
        if to is None and resume:
            raise ValueError("`resume` continues a run directory: with `to=None` there is none to continue.")
        self.path = None if to is None else Path(to)
        header = TrajectoryHeader(clock, origin)
        try:
            self._place: Memory | Disk = Memory(header) if self.path is None else Disk(self.path, header, resume)
        except OSError as error:
            if error.errno is None:
                raise  # a sentence of our own
            raise explained(error, f"A run cannot be recorded in {self.path}: ") from error
        self._layouts = self._place.layouts
        self._last_time = self._place.last_time
        self._looks = self._place.looks
        self._diverged = self._place.diverged
        # A recorder that is dropped without being closed must not lock its directory for the rest of the session.
        self._abandon = weakref.finalize(self, self._place.abandon)

    @property
    def last_time(self) -> Time | None:
        """The time of the last look, None before the first."""
        return self._last_time

    @property
    def looks(self) -> int:
        """How many looks are recorded."""
        return self._looks

    def append(self, time: Time, values: Mapping[str, xr.DataArray | float]) -> None:
        """Record one look: at a time later than all before, one reading for each of some curves.

        A reading is a number or a DataArray without `time`. A curve keeps the layout of its first reading: dims,
        labels, type of number and attributes. Curves need not be part of every look.
        """
        self._writable()
        now = _time(time)
        if self._last_time is not None and now <= self._last_time:
            raise ValueError(
                f"`time` should increase from look to look. Found time = {now} after time = {self._last_time}."
            )
        if not isinstance(values, Mapping):
            raise TypeError(f"`values` should map curve names to readings. Found {type(values).__name__}.")
        readings = {name: reading(name, value) for name, value in values.items()}
        fresh = {name: layout for name, (layout, _) in readings.items() if name not in self._layouts}
        for name, (layout, _) in readings.items():
            if name not in fresh and layout != self._layouts[name]:
                change = difference(self._layouts[name], layout)
                raise ValueError(f"{name!r} should keep the layout of its first reading. Found that {change}.")
        # An interrupt may come before or after the write. A time marked as used too early costs one look; one marked
        # too late could be recorded twice.
        before, self._last_time = self._last_time, now
        try:
            self._place.look(now, fresh, {name: array for name, (_, array) in readings.items()})
        except OSError as error:
            self._last_time = before
            raise self._unwritten(error, f"The look at time {now}") from error
        self._layouts.update(fresh)
        self._looks += 1

    def diverged(self, at: xr.DataArray | float) -> None:
        """Record when the run diverged: a time, or one for each seed or grid point, NaN where it did not."""
        self._writable()
        layout, values = reading("diverged", at)
        array = build(layout, values).astype(float)
        try:
            self._place.diverge(array_to_json(array))
        except OSError as error:
            raise self._unwritten(error, "The divergence") from error
        self._diverged = array

    def trajectory(self) -> Trajectory:
        """What is recorded so far."""
        return self._place.trajectory()

    def close(self) -> None:
        """Say that the run is finished. Closing again does nothing."""
        self._end("finished", None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        said = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
        try:
            self._end("failed" if isinstance(error, Exception) else "interrupted", said[:1000])
        except OSError as second:
            error.add_note(str(second))

    def _end(self, state: Ending, reason: str | None) -> None:
        # A forked child leaves its parent's run alone, however it exits.
        if not self._abandon.alive or not self._place.mine:
            return
        self._abandon.detach()
        try:
            self._place.end(state, reason, None if self._diverged is None else array_to_json(self._diverged))
        except OSError as error:
            raise self._unwritten(error, "How the run ended") from error

    def _writable(self) -> None:
        if not self._abandon.alive:
            raise ValueError(
                f"This recorder of {self._place} is closed. Open it again with `resume=True` to record more."
            )
        if not self._place.mine:
            raise RuntimeError(
                f"This recorder of {self._place} belongs to the process that opened it, not to this fork."
            )

    def _unwritten(self, error: OSError, what: str) -> OSError:
        count = f"{self._looks} look" + ("" if self._looks == 1 else "s")
        safe = f" The {count} already recorded {'is' if self._looks == 1 else 'are'} safe."
        return explained(error, f"{what} could not be written to {self._place}: ", safe)


def _time(value: object) -> Time:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"`time` should be a number. Found time = {value!r}.")
    time = int(value) if isinstance(value, (int, np.integer)) else float(value)
    if not usable(time):
        raise ValueError(f"`time` should be finite. Found time = {value!r}.")
    return time
