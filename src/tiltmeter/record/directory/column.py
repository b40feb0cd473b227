"""Column: the readings of one curve, look after look, gathered into one array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from tiltmeter.record.directory.layout import Layout, Time, build, size
from tiltmeter.record.labelled import values_from_json

#: What to do about a damaged line: its number and, in a few words, what is wrong.
Problem: TypeAlias = Callable[[int, str], None]

#: Readings wait as Python lists until there are this many numbers, then become one block: as fast as converting
#: everything at the end, without ever holding a whole run as Python objects.
BLOCK = 2**14


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
        self._waiting: list[tuple[int, Time, Any]] = []
        self._patience = max(1, BLOCK // max(1, size(layout)))

    def append(self, time: Time, values: Any, line: int = 0) -> None:
        """One reading: an array, or nested lists as read from a line."""
        self._waiting.append((line, time, values))
        if len(self._waiting) >= self._patience:
            self._gather()

    def array(self) -> xr.DataArray:
        """All readings so far, over time."""
        self._gather()
        if len(self._blocks) > 1:
            self._blocks = [np.concatenate(self._blocks)]
        self._blocks[0].flags.writeable = False  # so that the trajectory need not copy it
        return build(self.layout, self._blocks[0], self._times)

    def _gather(self) -> None:
        waiting, self._waiting = self._waiting, []
        dtype, shape = self.layout["dtype"], tuple(self.layout["shape"])
        try:
            block = values_from_json([values for *_, values in waiting], dtype, (len(waiting), *shape))
            self._times += [time for _, time, _ in waiting]
        except (ValueError, TypeError, OverflowError):
            # Some line is wrong: go through them one by one to name it.
            good = []
            for line, time, values in waiting:
                try:
                    good.append(values_from_json(values, dtype, shape))
                    self._times.append(time)
                except (ValueError, TypeError, OverflowError) as error:
                    self._problem(line, f"the values of {self._name!r} do not fit its layout: {error}")
            block = np.asarray(good, dtype=dtype).reshape(len(good), *shape)
        if len(block):
            self._blocks.append(block)
