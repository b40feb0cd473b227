"""Memory: keeps the looks of a recorder in memory, without files."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tiltmeter.record.directory.contents import Contents, Progress
from tiltmeter.record.directory.layout import Layout, Time, build
from tiltmeter.record.directory.point_records import decode, encode
from tiltmeter.record.directory.small_files import Ending, TrajectoryHeader
from tiltmeter.record.labelled import JSON
from tiltmeter.record.points import HeldPoints, Points, PointSource
from tiltmeter.record.trajectory import Trajectory


class Memory:
    """Like `Disk`, but lost when the process ends."""

    mine = True

    def __init__(self, header: TrajectoryHeader) -> None:
        self._header = header
        self._contents = Contents(_impossible)
        self._records: dict[str, list[bytes]] = {}

    @property
    def progress(self) -> Progress:
        return self._contents.progress()

    def beat(self) -> None:
        """Nobody else can ask."""

    def look(
        self,
        time: Time,
        fresh: Mapping[str, Layout],
        values: Mapping[str, np.ndarray],
        fresh_points: Mapping[str, Layout],
        points: Mapping[str, np.ndarray],
    ) -> None:
        # The caller may reuse its buffers for the next look.
        self._contents.look(time, fresh, {name: array.copy() for name, array in values.items()})
        for name, layout in fresh_points.items():
            file = str(len(self._contents.point_files))
            self._contents.point_column(name, layout, file)
            self._records[file] = []
        for name, array in points.items():
            column = self._contents.points[name]
            self._records[column.file].append(encode(array))
            column.extend((time,), (column.free,), (0,))

    def rewind(self, last: Time | None) -> None:
        self._contents.rewind(last)

    def diverge(self, at: dict[str, JSON]) -> None:
        self._contents.diverge(at)

    def trajectory(self) -> Trajectory:
        points: dict[str, PointSource] = {}
        for name, column in self._contents.points.items():
            data = b"".join(self._records[column.file][record] for record in column.records)
            values = decode(data, column.layout, len(column.times))
            points[name] = HeldPoints(build(column.layout, values, column.times).rename(name))
        return self._contents.trajectory(self._header.clock, self._header.origin, Points(points))

    def end(self, state: Ending, reason: str | None, diverged: JSON) -> None:
        """Nothing to say it to."""

    def abandon(self) -> None:
        """Nothing to let go of."""

    def __str__(self) -> str:
        return "memory"


def _impossible(_: int, fact: str) -> None:
    raise AssertionError(f"Readings were checked before they came here: {fact}.")
