"""Memory: the place a recorder writes to when nothing should touch the disk."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from tiltmeter.record.directory.contents import Contents
from tiltmeter.record.directory.layout import Layout, Time
from tiltmeter.record.directory.small_files import Ending, TrajectoryHeader
from tiltmeter.record.labelled import JSON
from tiltmeter.record.trajectory import Trajectory


class Memory:
    """What `Disk` does, forgotten when the process ends."""

    mine = True
    last_time: Time | None = None
    looks = 0
    diverged: xr.DataArray | None = None

    def __init__(self, header: TrajectoryHeader) -> None:
        self._header = header
        self._contents = Contents(_impossible)
        self.layouts: dict[str, Layout] = {}

    def look(self, time: Time, fresh: Mapping[str, Layout], values: Mapping[str, np.ndarray]) -> None:
        # The caller may use its buffers again for the next look.
        self._contents.look(time, fresh, {name: array.copy() for name, array in values.items()})

    def diverge(self, at: dict[str, JSON]) -> None:
        self._contents.diverge(at)

    def trajectory(self) -> Trajectory:
        return self._contents.trajectory(self._header.clock, self._header.origin)

    def end(self, state: Ending, reason: str | None, diverged: JSON) -> None:
        """Nothing to say it to."""

    def abandon(self) -> None:
        """Nothing to let go of."""

    def __str__(self) -> str:
        return "memory"


def _impossible(_: int, fact: str) -> None:
    raise AssertionError(f"Readings were checked before they came here: {fact}.")
