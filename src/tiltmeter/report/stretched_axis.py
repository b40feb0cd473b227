"""StretchedAxis: a time axis on which the first and the last change are both seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: The first change should lie at least this part of the axis away from its beginning.
SEEN = 0.08


@dataclass(frozen=True)
class StretchedAxis:
    """Times between `first` and `last` as places from 0 to 1: linear up to about `bend`, logarithmic after it."""

    first: float
    last: float
    bend: float

    def place(self, times: np.ndarray | float) -> np.ndarray:
        """Where times lie, from 0 to 1."""
        span = np.log1p((self.last - self.first) / self.bend)
        return np.asarray(np.log1p(np.maximum(np.asarray(times, dtype=float) - self.first, 0.0) / self.bend) / span)

    def ticks(self, room: float, least: float = 46.0) -> list[float]:
        """The first and last time and round ones between, with `least` pixels between them on an axis of `room`."""
        chosen = [self.first, self.last]
        largest = int(np.ceil(np.log10(max(self.last, 1e-12))))
        rounds = [m * 10.0**e for m in (1, 3) for e in range(largest - 6, largest + 1)]
        for time in sorted(rounds, key=lambda t: (round(t / 10 ** np.floor(np.log10(t)), 3) != 1, t)):
            away = [abs(float(self.place(time) - self.place(other))) * room for other in chosen]
            if self.first < time < self.last and min(away) >= least:
                chosen.append(time)
        return sorted(chosen)


def stretched_axis(times: np.ndarray, changes: np.ndarray | None = None) -> StretchedAxis:
    """An axis for looks at these times; `changes` are times that should be seen apart from the beginning.

    >>> axis = stretched_axis(np.array([0.0, 1.0, 5.0, 2500.0]), np.array([5.0]))
    >>> bool(axis.place(5.0) >= 0.08), float(axis.place(2500.0))
    (True, 1.0)
    >>> axis.ticks(400.0)
    [0.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 2500.0]
    """
    first, last = float(times[0]), float(times[-1])
    if not last > first:
        return StretchedAxis(first, first + 1.0, 1.0)
    steps = np.diff(times)
    smallest = float(steps[steps > 0].min())
    bend = (last - first) / 200.0
    wanted = [float(time) for time in (changes if changes is not None else []) if time > first]
    earliest = min(wanted, default=None)
    least = max(smallest / 2, (last - first) / 1000.0)  # the first steps do not take half of the picture
    while bend > least and (earliest is None or float(StretchedAxis(first, last, bend).place(earliest)) < SEEN):
        bend /= 2.0
        if earliest is None:
            break
    return StretchedAxis(first, last, max(bend, 1e-12))
