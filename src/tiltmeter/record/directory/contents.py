"""Contents: all that a run holds, gathered reading by reading, in memory or from the lines of its directory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.record.directory.column import Column, Problem
from tiltmeter.record.directory.layout import Layout, Time, build, difference
from tiltmeter.record.labelled import array_from_json, coords_from_json
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Clock, Trajectory


def usable(time: Time) -> bool:
    """Whether a number can be a time: finite, and an integer only if it fits one."""
    return math.isfinite(time) and (isinstance(time, float) or -(2**63) <= time < 2**63)


class Contents:
    """What has been recorded so far. Whatever contradicts it raises ValueError with a few words."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.columns: dict[str, Column] = {}
        self.last_time: Time | None = None
        self.looks = 0
        self.diverged: xr.DataArray | None = None
        self._whole_times: set[Time] = set()
        self._arrays: dict[str, xr.DataArray] = {}
        self._coords: dict[str, Any] = {}

    def layout(self, name: str, fresh: Mapping[str, Layout]) -> Layout:
        """The layout of a curve, which a look may give for the first time, or again."""
        column = self.columns.get(name)
        if column is None:
            if name not in fresh:
                raise ValueError(f"the layout of {name!r} is not known")
            return fresh[name]
        if name in fresh and fresh[name] != column.layout:
            raise ValueError(f"{name!r} changes its layout: {difference(column.layout, fresh[name])}")
        return column.layout

    def look(self, time: Time, fresh: Mapping[str, Layout], values: Mapping[str, Any], line: int = 0) -> None:
        """The readings taken at one time."""
        if not usable(time) or (self.last_time is not None and time <= self.last_time):
            raise ValueError(f"time {time} does not come after {self.last_time}")
        self.last_time = time
        self.looks += 1
        for name, value in values.items():
            if name not in self.columns:
                self.columns[name] = Column(name, fresh[name], self._problem)
            self.columns[name].append(time, value, line)

    def curve(self, name: str, layout: Layout, values: np.ndarray) -> None:
        """A whole curve at once."""
        if name in self.columns:
            raise ValueError(f"{name!r} is already there")
        times = layout["coords"].get("time")
        if layout["dims"][:1] != ["time"] or not isinstance(times, list) or len(times) != len(values):
            raise ValueError(f"{name!r} should have one time for each value")
        steps = np.asarray(times)
        if times and (steps.dtype.kind not in "fiu" or not (steps[1:] > steps[:-1]).all()):
            raise ValueError(f"the times of {name!r} should increase")
        reading = {
            **layout,
            "dims": layout["dims"][1:],
            "shape": layout["shape"][1:],
            "coords": {key: labels for key, labels in layout["coords"].items() if key != "time"},
        }
        self.columns[name] = Column(name, reading, self._problem, times, values)
        if times:
            self.last_time = times[-1] if self.last_time is None else max(self.last_time, times[-1])
        self.looks -= len(self._whole_times)
        self._whole_times.update(times)
        self.looks += len(self._whole_times)

    def array(self, name: str, layout: Layout, values: np.ndarray) -> None:
        """A variable of a dataset."""
        if name in self._arrays:
            raise ValueError(f"{name!r} is already there")
        self._arrays[name] = build(layout, values)

    def coords(self, coords: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
        """The coordinates of a dataset."""
        self._coords = coords_from_json(coords, sizes)

    def diverge(self, at: Mapping[str, Any]) -> None:
        """The times of divergence; the last ones said hold."""
        self.diverged = array_from_json(at)

    @property
    def layouts(self) -> dict[str, Layout]:
        return {name: column.layout for name, column in self.columns.items()}

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.columns, *self._arrays)

    def gather(self) -> None:
        """Everything through to arrays, for the sake of what may be wrong with it."""
        for column in self.columns.values():
            column.array()
        self.dataset({})

    def trajectory(self, clock: Clock, origin: Origin) -> Trajectory:
        curves = {name: column.array() for name, column in self.columns.items()}
        return Trajectory(curves, clock, origin, self.diverged)

    def dataset(self, attrs: Mapping[str, Any]) -> xr.Dataset:
        return xr.Dataset(self._arrays, self._coords, attrs)
