"""Contents: all that a run holds, gathered reading by reading, in memory or from the lines of its directory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.record.directory.column import Column, Problem
from tiltmeter.record.directory.layout import Layout, Time, build, difference
from tiltmeter.record.directory.point_records import PointColumn
from tiltmeter.record.labelled import array_from_json, coords_from_json
from tiltmeter.record.origin import Origin
from tiltmeter.record.points import Points
from tiltmeter.record.quoted import quoted
from tiltmeter.record.trajectory import Clock, Trajectory


def usable(time: Time) -> bool:
    """Whether a number can be a time: finite, and an integer only if it fits one."""
    return math.isfinite(time) if isinstance(time, float) else -(2**63) <= time < 2**63


@dataclass(frozen=True)
class Progress:
    """How far a run is: what the next look has to agree with."""

    layouts: dict[str, Layout]
    point_layouts: dict[str, Layout]
    last_time: Time | None
    looks: int
    diverged: xr.DataArray | None


class Contents:
    """What has been recorded so far. A contradiction raises a ValueError."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.columns: dict[str, Column] = {}
        self.points: dict[str, PointColumn] = {}
        self.point_files: set[str] = set()
        self.last_time: Time | None = None
        self.diverged: xr.DataArray | None = None
        #: The times after which looks were forgotten and the run went on anew; None: from its beginning.
        self.taken_up: tuple[Time | None, ...] = ()
        self._times: list[Time] = []
        self._whole_times: set[Time] = set()
        self._arrays: dict[str, xr.DataArray] = {}
        self._coords: dict[str, Any] = {}

    @property
    def looks(self) -> int:
        """The number of times at which anything was recorded."""
        return len(self._whole_times.union(self._times)) if self._whole_times else len(self._times)

    @property
    def looks_with_points(self) -> int:
        return len({time for column in self.points.values() for time in column.times})

    def layout(self, name: str, fresh: Mapping[str, Layout]) -> Layout:
        """The layout of a curve, which a look may give for the first time, or again."""
        column = self.columns.get(name)
        if column is None:
            if name not in fresh:
                raise ValueError(f"the layout of {quoted(name)} is not known")
            return fresh[name]
        if name in fresh and fresh[name] != column.layout:
            raise ValueError(f"{quoted(name)} changes its layout: {difference(column.layout, fresh[name])}")
        return column.layout

    def look(self, time: Time, fresh: Mapping[str, Layout], values: Mapping[str, Any], line: int = 0) -> None:
        """The readings taken at one time."""
        if not usable(time) or (self.last_time is not None and time <= self.last_time):
            raise ValueError(f"time {quoted(time)} does not come after {self.last_time}")
        self.last_time = time
        self._times.append(time)
        for name, value in values.items():
            if name not in self.columns:
                self.columns[name] = Column(name, fresh[name], self._problem)
            self.columns[name].append(time, value, line)

    def looks_on_end(self, times: list[Time], values: Mapping[str, list[Any]], first: int) -> bool:
        """Append many looks at known curves, like `look`; return False and do nothing if any is doubtful."""
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
        """The records of a name, which a look may describe for the first time, or again."""
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
        """Forget every look after this time (None: all of them), and note that a new course begins there."""
        for column in self.columns.values():
            column.cut(last)
        for kept_beside in self.points.values():
            kept_beside.cut(last)
        # Curves without a look left are dropped; a later look gives their layout again.
        self.columns = {name: column for name, column in self.columns.items() if column.looks}
        self.points = {name: column for name, column in self.points.items() if column.times}
        self._times = [] if last is None else [time for time in self._times if time <= last]
        self._whole_times = set() if last is None else {time for time in self._whole_times if time <= last}
        self.last_time = max([*self._times, *self._whole_times], default=None)
        last_kept = self.last_time
        before = [time for time in self.taken_up if last_kept is not None and time is not None and time < last_kept]
        self.taken_up = (*before, last_kept)
        if self.diverged is not None:
            kept = self.diverged.where(self.diverged <= (-math.inf if last is None else last))
            self.diverged = None if bool(kept.isnull().all()) else kept

    def curve(self, name: str, layout: Layout, values: np.ndarray) -> None:
        """A whole curve at once."""
        if name in self.columns:
            raise ValueError(f"{quoted(name)} is already there")
        times = layout["coords"].get("time")
        if layout["dims"][:1] != ["time"] or not isinstance(times, list) or len(times) != len(values):
            raise ValueError(f"{quoted(name)} should have one time for each value")
        steps = np.asarray(times)
        if times and (steps.dtype.kind not in "fiu" or steps.ndim != 1 or not (steps[1:] > steps[:-1]).all()):
            raise ValueError(f"the times of {quoted(name)} should increase")
        reading = {
            **layout,
            "dims": layout["dims"][1:],
            "shape": layout["shape"][1:],
            "coords": {key: labels for key, labels in layout["coords"].items() if key != "time"},
        }
        self.columns[name] = Column(name, reading, self._problem, times, values)
        if times:
            self.last_time = times[-1] if self.last_time is None else max(self.last_time, times[-1])
        self._whole_times.update(times)

    def array(self, name: str, layout: Layout, values: np.ndarray) -> None:
        """A variable of a dataset."""
        if name in self._arrays:
            raise ValueError(f"{quoted(name)} is already there")
        self._arrays[name] = build(layout, values)

    def coords(self, coords: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
        """The coordinates of a dataset."""
        self._coords = coords_from_json(coords, sizes)

    def diverge(self, at: Mapping[str, Any]) -> None:
        """Set the times of divergence; the last call counts."""
        found = array_from_json(at)
        if found.dtype.kind != "f":
            raise ValueError("times of divergence should be floats")
        self.diverged = found

    def progress(self) -> Progress:
        """What the next look has to agree with."""
        return Progress(
            {name: column.layout for name, column in self.columns.items()},
            {name: column.layout for name, column in self.points.items()},
            self.last_time,
            self.looks,
            self.diverged,
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
