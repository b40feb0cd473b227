"""Column: the readings of one curve, look after look, gathered into one array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from tiltmeter.record.directory.layout import Layout, Time, build, size
from tiltmeter.record.labelled import values_from_json
from tiltmeter.record.quoted import quoted, shortened

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
        self._blocks = [np.empty((0, *layout["shape"]), dtype=layout["dtype"]) if values is None else values]
        self._waiting: list[tuple[int, Sequence[Time], Sequence[Any]]] = []
        self._count = 0
        self._patience = max(1, BLOCK // max(1, size(layout)))

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
        coords = self.layout["coords"]
        for name, coord in coords.items():  # labels of the times themselves, as a saved trajectory may carry
            if isinstance(coord, dict) and coord["dims"] == ["time"]:
                coords = {**coords, name: {**coord, "labels": coord["labels"][:kept]}}
        self.layout = {**self.layout, "coords": coords}

    @property
    def looks(self) -> int:
        return len(self._times) + self._count

    def array(self) -> xr.DataArray:
        """All readings so far, over time."""
        self._gather()
        if len(self._blocks) > 1:
            self._blocks = [np.concatenate(self._blocks)]
        self._blocks[0].flags.writeable = False  # so that the trajectory does not copy it
        return build(self.layout, self._blocks[0], self._times)

    def _gather(self) -> None:
        waiting, self._waiting, self._count = self._waiting, [], 0
        dtype, shape = self.layout["dtype"], tuple(self.layout["shape"])
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
