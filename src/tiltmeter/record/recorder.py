"""Recorder: records the evaluations of a run, safe against crashes, and returns them as a trajectory."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import numpy as np
import xarray as xr

from tiltmeter.arguments import checked_path
from tiltmeter.record.contents import Memory, Progress, usable
from tiltmeter.record.directory.atomic_files import explained
from tiltmeter.record.directory.disk import Disk, Gone
from tiltmeter.record.directory.small_files import Ending, TrajectoryHeader, read_header
from tiltmeter.record.labelled import coord_arrays
from tiltmeter.record.layout import Layout, Time, difference, point_layout, reading
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Clock, Trajectory
from tiltmeter.shown_text import quoted


class Recorder:
    """Records the curves of one run, in memory (`to=None`) or in a run directory, evaluation by evaluation.

    >>> with Recorder(to=None, clock="step", origin=Origin("example")) as recorder:
    ...     for step in range(0, 30, 10):
    ...         recorder.append(step, {"loss": 1 / (1 + step)})
    ...     recorder.append(30, {"loss": 1 / 31, "sharpness": 2.0})
    >>> recorder.trajectory()
    <Trajectory example, clock step, 2 curves>
      loss       (time: 4)  time 0 .. 30
      sharpness  (time: 1)  time 30 .. 30

    Once `append` has returned, the operating system has the evaluation: killing the process loses nothing. Leaving the
    `with` block records how the run ended: finished, failed (with the reason) or interrupted.

    A directory that already holds a run is refused, unless `resume=True` continues it after its last evaluation.

    Args:
        to: Run directory; None: memory.
        clock: What time counts: "step", "epoch", "round" or "t".
        origin: What makes the run.
        resume: Whether a run that is there is continued after its last evaluation.
    """

    def __init__(
        self, to: str | os.PathLike[str] | None, *, clock: Clock, origin: Origin, resume: bool = False
    ) -> None:
        Trajectory({}, clock, origin)  # the same sentences for a bad clock or origin, before anything is created
        if to is None and resume:
            raise ValueError("`resume` continues a run directory: with `to=None` there is none to continue.")
        self.path = None if to is None else checked_path("to", to)
        try:
            self._place: Memory | Disk = (
                Memory(clock, origin) if self.path is None else Disk(self.path, TrajectoryHeader(clock, origin), resume)
            )
        except OSError as error:
            if error.errno is None:
                raise  # a sentence of our own
            raise explained(error, f"A run cannot be recorded in {self.path}: ") from error
        self._follow(self._place.progress)
        # Threads wait for each other. A thread interrupted by its own signal handler must not wait for itself.
        self._turn = threading.RLock()
        self._writing = False
        # A recorder that is garbage collected without being closed must release its directory.
        self._abandon = weakref.finalize(self, self._place.abandon)

    def _follow(self, progress: Progress) -> None:
        self._layouts, self._point_layouts = dict(progress.layouts), dict(progress.point_layouts)
        self._point_labels: dict[str, Mapping[Hashable, xr.Variable]] = {}
        self._last_readings: dict[str, tuple[xr.DataArray, Layout]] = {}
        self._last_time, self._evaluations, self._diverged = progress.last_time, progress.evaluations, progress.diverged
        self._missing_until = progress.missing_until
        #: How many planned evaluations were left out, and the batch by which that was decided.
        self.left_out, self.batch_of_plan = progress.left_out, progress.batch_of_plan
        self._waiting: list[Time] = []

    @property
    def last_time(self) -> Time | None:
        """The time of the last evaluation, None before the first."""
        return self._last_time

    @property
    def next_step(self) -> int:
        """The first step whose evaluation is neither recorded nor accepted as missing."""
        last = -1 if self._last_time is None else int(self._last_time)
        return max(last + 1, int(self._missing_until or 0))

    @property
    def evaluations(self) -> int:
        """How many evaluations are recorded."""
        return self._evaluations

    def append(
        self,
        time: Time,
        values: Mapping[str, xr.DataArray | float],
        points: Mapping[str, xr.DataArray] | None = None,
    ) -> None:
        """Record one evaluation: at a time later than all before, one reading for each of some curves.

        A reading is a number or a DataArray without `time`. A curve keeps the layout of its first reading: dims,
        labels, type of number and attributes. Curves need not be part of every evaluation.

        `points` are arrays to keep in addition to the curves, such as the loss of every held-out point (`float32`) and
        the decisions (`bool`, kept as bits). Only the first reading needs labels. `Trajectory.points` returns them.
        """
        self._writable()
        with self._one_at_a_time():
            self._append(time, values, points or {})

    def _append(self, time: Time, values: Mapping[str, Any], points: Mapping[str, Any]) -> None:
        now = _time(time)
        if self._last_time is not None and now <= self._last_time:
            raise ValueError(
                f"`time` should increase from evaluation to evaluation. Found time = {now} after time = "
                f"{self._last_time}."
            )
        for name, given in (("values", values), ("points", points)):
            if not isinstance(given, Mapping):
                raise TypeError(f"`{name}` should map curve names to readings. Found {type(given).__name__}.")
        readings = {name: self._read(name, value) for name, value in values.items()}
        fresh = {name: layout for name, (layout, _) in readings.items() if name not in self._layouts}
        for name, (layout, _) in readings.items():
            if name not in fresh and layout != self._layouts[name]:
                change = difference(self._layouts[name], layout)
                raise ValueError(f"{name!r} should keep the layout of its first reading. Found that {change}.")
        fresh_points = {n: point_layout(n, array) for n, array in points.items() if n not in self._point_layouts}
        for name, array in points.items():
            if name not in fresh_points:
                self._same_points(name, array)
        # An interrupt may come before or after the write. A time marked as used too early costs one evaluation; one
        # marked too late could be recorded twice.
        before, self._last_time = self._last_time, now
        try:
            self._write_left_out()
            arrays = {name: array for name, (_, array) in readings.items()}
            self._place.evaluate(
                now, fresh, arrays, fresh_points, {name: array.values for name, array in points.items()}
            )
        except OSError as error:
            self._last_time = before
            raise self._unwritten(error, f"The evaluation at time {now}") from error
        self._layouts.update(fresh)
        self._point_layouts.update(fresh_points)
        self._evaluations += 1

    def _read(self, name: str, value: Any) -> tuple[Layout, np.ndarray]:
        """Return layout and values of one reading; labels that are the same objects as before are not read again."""
        known = self._last_readings.get(name)
        if known is not None and isinstance(value, xr.DataArray):
            before, found = known
            if value._coords is before._coords:
                # The private fields hold the same as the public ones, which take longer than the comparison.
                now, then = value._variable, before._variable
                array: Any = now._data
                first: Any = then._data
                same = type(array) is type(first) is np.ndarray and array.shape == first.shape
                # No attributes are None until somebody asks for them, then an empty dict.
                same = same and array.dtype == first.dtype and now._dims == then._dims
                if same and (now._attrs or {}) == (then._attrs or {}):
                    return found, array
        layout, array = reading(name, value)
        if isinstance(value, xr.DataArray):
            self._last_readings[name] = value, layout
        return layout, array

    def diverged(self, at: xr.DataArray | float) -> None:
        """Record when the run diverged: a time, or one for each seed or grid point, NaN where it did not."""
        self._writable()
        layout, values = reading("diverged", at)
        array = layout.build(values).astype(float)
        with self._one_at_a_time():
            try:
                self._place.diverge(array)
            except OSError as error:
                raise self._unwritten(error, "The divergence") from error
            self._diverged = array

    def rewind(self, time: Time | None) -> None:
        """Drop every evaluation after `time` (None: all), because training continues from an older checkpoint.

        >>> recorder = Recorder(None, clock="step", origin=Origin("example"))
        >>> for step in (0, 10, 20):
        ...     recorder.append(step, {"loss": 1 / (1 + step)})
        >>> recorder.rewind(15)
        >>> recorder.last_time, recorder.evaluations
        (10, 2)
        """
        self._writable()
        last = None if time is None else _time(time)
        with self._one_at_a_time():
            try:
                self._place.rewind(last)
            except OSError as error:
                raise self._unwritten(error, "That the run goes on from an earlier time") from error
            self._follow(self._place.progress)

    def leave_out(self, step: int, batch: int | None = None) -> None:
        """Note that a planned evaluation is not taken; it is written with the next one, or at the end.

        Args:
            step: The step of the evaluation.
            batch: Points of a training step, by which that was decided; None: not known.
        """
        self._writable()
        self._waiting.append(_time(step))
        self.left_out, self.batch_of_plan = self.left_out + 1, batch

    def _write_left_out(self) -> None:
        if self._waiting:
            self._place.leave_out(self._waiting, self.batch_of_plan)
            self._waiting = []

    def sync(self) -> None:
        """Have everything recorded so far on the disk: before a checkpoint gets its name, and wherever a power cut
        must lose nothing. It takes about as long as an evaluation of a small model."""
        self._writable()
        with self._one_at_a_time():
            try:
                self._place.sync()
            except OSError as error:
                raise self._unwritten(error, "What was recorded") from error

    def trajectory(self) -> Trajectory:
        """What is recorded so far."""
        with self._turn:
            return self._place.trajectory()

    def close(self, note: str | None = None) -> None:
        """Mark the run as finished, with a `note` about it if there is one. Closing twice does nothing."""
        self._end("finished", None if note is None else note[:1000])

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
        # A forked child does not touch its parent's run, however it exits.
        if not self._place.mine:
            return
        with self._one_at_a_time():
            if not self._abandon.alive:
                return
            self._abandon.detach()
            try:
                self._write_left_out()
                self._place.end(state, reason, self._diverged)
            except OSError as error:
                raise self._unwritten(error, "How the run ended") from error

    @contextlib.contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        with self._turn:
            if self._writing:
                raise RuntimeError(
                    f"This recorder of {self._place} is in the middle of an evaluation: a signal handler cannot use "
                    "it. "
                    "Raise an exception there instead, and leave the `with` block."
                )
            self._writing = True
            try:
                yield
            finally:
                self._writing = False

    def _writable(self) -> None:
        if not self._abandon.alive:
            raise ValueError(
                f"This recorder of {self._place} is closed. Open it again with `resume=True` to record more."
            )
        if not self._place.mine:
            raise RuntimeError(
                f"This recorder of {self._place} belongs to the process that opened it, not to this fork."
            )

    def _same_points(self, name: str, array: object) -> None:
        known = self._point_layouts[name]
        if not isinstance(array, xr.DataArray):
            raise TypeError(f"Points of {name!r} should be an xarray.DataArray. Found {type(array).__name__}.")
        given = replace(known, dims=tuple(map(str, array.dims)), shape=array.shape, dtype=str(array.dtype))
        if given != known:
            raise ValueError(
                f"The points of {name!r} should keep the layout of their first reading. "
                f"Found that {difference(known, given)}."
            )
        if not array.coords:
            return
        if name not in self._point_labels:
            labels = coord_arrays(known.coords, known.sizes)
            self._point_labels[name] = {key: xr.Variable(*label) for key, label in labels.items()}
        for key, coord in array.coords.items():
            if key != "time" and not coord.variable.equals(self._point_labels[name].get(key, _NO_LABELS)):
                raise ValueError(
                    f"The points of {name!r} should stay the same from evaluation to evaluation. "
                    f"Found other labels in `{key}` than in their first reading."
                )

    def _unwritten(self, error: OSError, what: str) -> OSError:
        if isinstance(error, Gone):
            lost = "deleted" in str(error)
            fate = (
                "The evaluations recorded there before are lost."
                if lost
                else "The evaluations recorded before moved with it."
            )
            return FileNotFoundError(f"{what} could not be written to {self._place}: {error}. {fate}")
        if isinstance(error, BlockingIOError):
            return BlockingIOError(f"{what} could not be written to {self._place}: {str(error).rstrip('.')}.")
        count = f"{self._evaluations} evaluation" + ("" if self._evaluations == 1 else "s")
        safe = f" The {count} already recorded {'is' if self._evaluations == 1 else 'are'} safe."
        return explained(error, f"{what} could not be written to {self._place}: ", safe)


def accept_missing(path: str | os.PathLike[str], until: int) -> None:
    """Let a run go on at step `until` although evaluations before it were lost; the run says so from then on.

    >>> from tempfile import TemporaryDirectory
    >>> import tiltmeter as tm
    >>> with TemporaryDirectory() as folder:
    ...     with Recorder(f"{folder}/run", clock="step", origin=Origin("example")) as recorder:
    ...         recorder.append(10, {"loss": 0.5})
    ...     accept_missing(f"{folder}/run", until=50)
    ...     tm.record.check(f"{folder}/run").missing_until
    50

    A checkpoint may be ahead of the evaluations, as after a power cut or in a copy of a running training. Resuming
    there refuses and offers this choice.

    Args:
        path: Run directory.
        until: The step at which the training goes on.
    """
    directory, step = checked_path("path", path), _time(until)
    header = read_header(directory)
    if not isinstance(header, TrajectoryHeader):
        raise ValueError(f"{directory} holds a dataset, which misses no evaluations.")
    recorder = Recorder(directory, clock=header.clock, origin=header.origin, resume=True)
    try:
        recorder._place.accept_missing(step)
        recorder.sync()
    finally:
        recorder._abandon()


_NO_LABELS = xr.Variable((), None)

#: Up to this number, integers and floats give the same times.
LAST_TIME = 2**53


def _time(value: object) -> Time:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"`time` should be a number. Found time = {quoted(value)}.")
    time = int(value) if isinstance(value, (int, np.integer)) else float(value)
    if not usable(time) or (isinstance(time, int) and abs(time) > LAST_TIME):
        raise ValueError(
            f"`time` should be finite, and at most 2**53 if it is an integer. Found time = {quoted(value)}."
        )
    return time
