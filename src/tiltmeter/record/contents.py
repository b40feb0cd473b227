"""Contents: all that a run holds, gathered reading by reading, in memory or from the lines of its directory."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from tiltmeter.record.labelled import Labels, coord_arrays, coords_from_json, values_from_json
from tiltmeter.record.layout import Layout, Time, difference
from tiltmeter.record.origin import Origin
from tiltmeter.record.points import HeldPoints, Points
from tiltmeter.record.trajectory import Clock, Trajectory
from tiltmeter.shown_text import quoted, shortened

#: Called for a damaged line with its number and, in a few words, the damage.
Problem: TypeAlias = Callable[[int, str], None]

#: Readings are collected as Python lists up to this many numbers, then converted: as fast as converting
#: everything at the end, without holding a whole run as Python objects.
BLOCK = 2**10


class Column:
    """Readings of one layout, appended in order of time."""

    def __init__(
        self, name: str, layout: Layout, problem: Problem, times: Sequence[Time] = (), values: np.ndarray | None = None
    ) -> None:
        self.layout = layout
        self._name = name
        self._problem = problem
        self._times = list(times)
        self._blocks = [np.empty((0, *layout.shape), dtype=layout.dtype) if values is None else values]
        self._waiting: list[tuple[int, Sequence[Time], Sequence[Any]]] = []
        self._count = 0
        self._patience = max(1, BLOCK // max(1, layout.size))

    def append(self, time: Time, values: Any, line: int = 0) -> None:
        """One reading: an array, or nested lists as read from a line."""
        self.extend((time,), (values,), line)

    def extend(self, times: Sequence[Time], values: Sequence[Any], first: int = 0) -> None:
        """Append the readings of consecutive lines, the first of which has this number."""
        self._waiting.append((first, times, values))
        self._count += len(times)
        if self._count >= self._patience:
            self._gather()

    def cut(self, last: Time | None) -> None:
        """Forget the readings after this time."""
        self._gather()
        kept = 0 if last is None else sum(time <= last for time in self._times)
        self._blocks = [np.concatenate(self._blocks)[:kept]]
        del self._times[kept:]
        coords = self.layout.coords
        for name, coord in coords.items():  # labels of the times themselves, as a saved trajectory may carry
            if coord.dims == ("time",):
                coords = {**coords, name: Labels(coord.dims, coord.labels[:kept])}
        self.layout = replace(self.layout, coords=coords)

    @property
    def evaluations(self) -> int:
        return len(self._times) + self._count

    def array(self) -> xr.DataArray:
        """All readings so far, over time."""
        self._gather()
        if len(self._blocks) > 1:
            self._blocks = [np.concatenate(self._blocks)]
        self._blocks[0].flags.writeable = False  # so that the trajectory does not copy it
        return self.layout.build(self._blocks[0], self._times)

    def _gather(self) -> None:
        waiting, self._waiting, self._count = self._waiting, [], 0
        dtype, shape = self.layout.dtype, self.layout.shape
        times = [time for _, some, _ in waiting for time in some]
        try:
            nested = [value for *_, values in waiting for value in values]
            block = values_from_json(nested, dtype, (len(times), *shape))
            self._times += times
        except (ValueError, TypeError, OverflowError):
            # Some line is wrong: go through them one by one to name it.
            good = []
            for first, some, values in waiting:
                for line, (time, value) in enumerate(zip(some, values, strict=True), first):
                    try:
                        good.append(values_from_json(value, dtype, shape))
                        self._times.append(time)
                    except (ValueError, TypeError, OverflowError, RecursionError) as error:
                        fact = shortened(str(error))
                        self._problem(line, f"the values of {quoted(self._name)} do not fit its layout: {fact}")
            block = np.asarray(good, dtype=dtype).reshape(len(good), *shape)
        if len(block):
            self._blocks.append(block)


def usable(time: Time) -> bool:
    """Whether a number can be a time: finite, and an integer only if it fits one."""
    return math.isfinite(time) if isinstance(time, float) else -(2**63) <= time < 2**63


def times_of(layout: Layout) -> list[Time] | None:
    """The times of a layout whose first dimension is `time`; None for any other."""
    labels = layout.coords.get("time")
    return labels.labels if layout.dims[:1] == ("time",) and labels is not None and labels.dims == ("time",) else None


class PointColumn:
    """Which records of a file hold the points of one name, and when they were taken."""

    def __init__(self, name: str, layout: Layout, file: str) -> None:
        self.name, self.layout, self.file = name, layout, file
        self.times: list[Time] = []
        self.records: list[int] = []
        self.checksums: list[int] = []
        #: Of a directory: the lines that name the records, and how many records are known to be whole.
        self.lines: list[int] = []
        self.verified = 0
        self.free = 0  # the next record; a record that was ever named is not reused

    def extend(self, times: Sequence[Time], records: Sequence[int], checksums: Sequence[int], line: int = 0) -> None:
        self.times += times
        self.records += records
        self.checksums += checksums
        self.lines += [line] * len(times)
        self.free = max([self.free, *(record + 1 for record in records)])

    def cut(self, last: Time | None) -> None:
        """Forget what was kept after this time."""
        kept = 0 if last is None else sum(time <= last for time in self.times)
        del self.times[kept:], self.records[kept:], self.checksums[kept:], self.lines[kept:]
        self.verified = min(self.verified, kept)


@dataclass(frozen=True)
class Progress:
    """How far a run is: what the next evaluation has to agree with."""

    layouts: dict[str, Layout]
    point_layouts: dict[str, Layout]
    last_time: Time | None
    evaluations: int
    diverged: xr.DataArray | None
    missing_until: Time | None
    left_out: int
    batch_of_plan: int | None


class Contents:
    """What has been recorded so far. A contradiction raises a ValueError."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.columns: dict[str, Column] = {}
        self.points: dict[str, PointColumn] = {}
        self.point_files: set[str] = set()
        self.last_time: Time | None = None
        self.diverged: xr.DataArray | None = None
        #: The times after which evaluations were forgotten and the run went on anew; None: from its beginning.
        self.taken_up: tuple[Time | None, ...] = ()
        #: Times of evaluations that were planned and not taken, and the batch by which that was decided.
        self.left_out: list[Time] = []
        self.batch_of_plan: int | None = None
        #: Evaluations before this time were lost, and the run went on without them; None: none were.
        self.missing_until: Time | None = None
        self._times: list[Time] = []
        self._whole_times: set[Time] = set()
        self._arrays: dict[str, xr.DataArray] = {}
        self._coords: dict[str, Any] = {}

    @property
    def evaluations(self) -> int:
        """The number of times at which anything was recorded."""
        return len(self._whole_times.union(self._times)) if self._whole_times else len(self._times)

    @property
    def evaluations_with_points(self) -> int:
        return len({time for column in self.points.values() for time in column.times})

    def layout(self, name: str, fresh: Mapping[str, Layout]) -> Layout:
        """The layout of a curve, which an evaluation may give for the first time, or again."""
        column = self.columns.get(name)
        if column is None:
            if name not in fresh:
                raise ValueError(f"the layout of {quoted(name)} is not known")
            return fresh[name]
        if name in fresh and fresh[name] != column.layout:
            raise ValueError(f"{quoted(name)} changes its layout: {difference(column.layout, fresh[name])}")
        return column.layout

    def evaluate(self, time: Time, fresh: Mapping[str, Layout], values: Mapping[str, Any], line: int = 0) -> None:
        """The readings taken at one time."""
        if not usable(time) or (self.last_time is not None and time <= self.last_time):
            raise ValueError(f"time {quoted(time)} does not come after {self.last_time}")
        self.last_time = time
        self._times.append(time)
        for name, value in values.items():
            if name not in self.columns:
                self.columns[name] = Column(name, fresh[name], self._problem)
            self.columns[name].append(time, value, line)

    def evaluations_on_end(self, times: list[Time], values: Mapping[str, list[Any]], first: int) -> bool:
        """Append many evaluations of known curves at once; return False and do nothing if any is doubtful."""
        if not set(map(type, times)) <= {int, float} or not values.keys() <= self.columns.keys():
            return False
        before = [] if self.last_time is None else [self.last_time]
        steps = np.asarray([*before, *times])
        if steps.dtype.kind not in "fi" or not np.isfinite(steps).all() or not (steps[1:] > steps[:-1]).all():
            return False
        self.last_time = times[-1]
        self._times += times
        for name, readings in values.items():
            self.columns[name].extend(times, readings, first)
        return True

    def point_column(self, name: str, layout: Layout, file: str) -> PointColumn:
        """The records of a name, which an evaluation may describe for the first time, or again."""
        known = self.points.get(name)
        if known is not None and (known.file, known.layout) == (file, layout):
            return known
        if known is not None:
            raise ValueError(f"the points of {quoted(name)} are already there, described otherwise")
        if file in self.point_files:
            raise ValueError(f"{file} holds other points already")
        self.point_files.add(file)
        self.points[name] = PointColumn(name, layout, file)
        return self.points[name]

    def rewind(self, last: Time | None) -> None:
        """Forget every evaluation after this time (None: all of them), and note that a new course begins there."""
        for column in self.columns.values():
            column.cut(last)
        for kept_beside in self.points.values():
            kept_beside.cut(last)
        # Curves without an evaluation left are dropped; a later evaluation gives their layout again.
        self.columns = {name: column for name, column in self.columns.items() if column.evaluations}
        self.points = {name: column for name, column in self.points.items() if column.times}
        self._times = [] if last is None else [time for time in self._times if time <= last]
        self._whole_times = set() if last is None else {time for time in self._whole_times if time <= last}
        self.last_time = max([*self._times, *self._whole_times], default=None)
        self.left_out = [] if last is None else [time for time in self.left_out if time <= last]
        last_kept = self.last_time
        before = [time for time in self.taken_up if last_kept is not None and time is not None and time < last_kept]
        self.taken_up = (*before, last_kept)
        if self.missing_until is not None and (last is None or last < self.missing_until):
            self.missing_until = None  # they will be taken again
        if self.diverged is not None:
            kept = self.diverged.where(self.diverged <= (-math.inf if last is None else last))
            self.diverged = None if bool(kept.isnull().all()) else kept

    def leave_out(self, times: Sequence[Time], batch: int | None) -> None:
        """Planned evaluations that were not taken, and the batch by which that was decided."""
        self.left_out += times
        self.batch_of_plan = batch

    def curve(self, name: str, layout: Layout, values: np.ndarray) -> None:
        """A whole curve at once."""
        if name in self.columns:
            raise ValueError(f"{quoted(name)} is already there")
        times = times_of(layout)
        if times is None or len(times) != len(values):
            raise ValueError(f"{quoted(name)} should have one time for each value")
        steps = np.asarray(times)
        numbers = steps.dtype.kind in "fiu" and steps.ndim == 1 and np.isfinite(steps).all()
        if times and not (numbers and (steps[1:] > steps[:-1]).all()):
            raise ValueError(f"the times of {quoted(name)} should increase")
        self.columns[name] = Column(name, layout.without_time(), self._problem, times, values)
        if times:
            self.last_time = times[-1] if self.last_time is None else max(self.last_time, times[-1])
        self._whole_times.update(times)

    def array(self, name: str, layout: Layout, values: np.ndarray) -> None:
        """A variable of a dataset."""
        if name in self._arrays:
            raise ValueError(f"{quoted(name)} is already there")
        self._arrays[name] = layout.build(values)

    def coords(self, coords: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
        """The coordinates of a dataset."""
        self._coords = coord_arrays(coords_from_json(coords), sizes)

    def diverge(self, at: xr.DataArray) -> None:
        """Set the times of divergence; the last call counts."""
        if at.dtype.kind != "f":
            raise ValueError("times of divergence should be floats")
        self.diverged = at

    def progress(self) -> Progress:
        """What the next evaluation has to agree with."""
        return Progress(
            {name: column.layout for name, column in self.columns.items()},
            {name: column.layout for name, column in self.points.items()},
            self.last_time,
            self.evaluations,
            self.diverged,
            self.missing_until,
            len(self.left_out),
            self.batch_of_plan,
        )

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.columns, *self._arrays)

    def gather(self) -> None:
        """Convert everything to arrays, to find errors."""
        for column in self.columns.values():
            column.array()
        self.dataset({})

    def trajectory(self, clock: Clock, origin: Origin, points: Points) -> Trajectory:
        curves = {name: column.array() for name, column in self.columns.items()}
        return Trajectory(curves, clock, origin, self.diverged, points=points)

    def dataset(self, attrs: Mapping[str, Any]) -> xr.Dataset:
        return xr.Dataset(self._arrays, self._coords, attrs)


class Memory:
    """A run that is recorded nowhere else, and lost when the process ends. Nothing of it passes through JSON."""

    mine = True

    def __init__(self, clock: Clock, origin: Origin) -> None:
        self._clock, self._origin = clock, origin
        self._contents = Contents(_impossible)
        self._records: dict[str, list[np.ndarray]] = {}

    @property
    def progress(self) -> Progress:
        return self._contents.progress()

    def sync(self) -> None:
        """Nothing outlives the process."""

    def evaluate(
        self,
        time: Time,
        fresh: Mapping[str, Layout],
        values: Mapping[str, np.ndarray],
        fresh_points: Mapping[str, Layout],
        points: Mapping[str, np.ndarray],
    ) -> None:
        # The caller may reuse its buffers for the next evaluation.
        self._contents.evaluate(time, fresh, {name: array.copy() for name, array in values.items()})
        for name, layout in fresh_points.items():
            file = str(len(self._contents.point_files))
            self._contents.point_column(name, layout, file)
            self._records[file] = []
        for name, array in points.items():
            column = self._contents.points[name]
            self._records[column.file].append(_kept(array))
            column.extend((time,), (column.free,), (0,))

    def rewind(self, last: Time | None) -> None:
        self._contents.rewind(last)

    def accept_missing(self, until: Time) -> None:
        self._contents.missing_until = until

    def leave_out(self, times: list[Time], batch: int | None) -> None:
        self._contents.leave_out(times, batch)

    def diverge(self, at: xr.DataArray) -> None:
        self._contents.diverge(at)

    def trajectory(self) -> Trajectory:
        points = {name: HeldPoints(self._points(column)) for name, column in self._contents.points.items()}
        return self._contents.trajectory(self._clock, self._origin, Points(points))

    def _points(self, column: PointColumn) -> xr.DataArray:
        records = self._records[column.file]
        rows = [records[record] for record in column.records]
        values: np.ndarray = np.stack(rows)
        if column.layout.dtype == "bool":
            values = np.unpackbits(values, axis=1, count=column.layout.size).view(bool)
            values = values.reshape(len(rows), *column.layout.shape)
        values.flags.writeable = False
        return column.layout.build(values, column.times).rename(column.name)

    def end(self, state: str, reason: str | None, diverged: xr.DataArray | None) -> None:
        """Nothing to say it to."""

    def abandon(self) -> None:
        """Nothing to let go of."""

    def __str__(self) -> str:
        return "memory"


def _kept(array: np.ndarray) -> np.ndarray:
    """A copy of one reading; truth values as bits."""
    return np.packbits(array.ravel()) if array.dtype.kind == "b" else array.copy()


def _impossible(_: int, fact: str) -> None:
    raise AssertionError(f"Readings were checked before they came here: {fact}.")
