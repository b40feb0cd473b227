"""Axes: where things stand in a picture of one width, and a time axis on which the first and last change are seen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tiltmeter.report import svg
from tiltmeter.report.wording import moment

#: The first change should lie at least this part of the axis away from its beginning.
SEEN = 0.08


@dataclass(frozen=True)
class Frame:
    """Where things stand in a picture of one width, in pixels."""

    width: float
    left: float
    right: float
    top: float = 26.0
    height: float = 300.0

    @property
    def room(self) -> float:
        return self.width - self.left - self.right

    @property
    def bottom(self) -> float:
        return self.top + self.height


WIDE = Frame(570.0, 112.0, 132.0, height=280.0)
NARROW = Frame(360.0, 76.0, 84.0, height=220.0)


#: The width of a letter of a bold label and of a plain one, in pixels.
BOLD, PLAIN = 7.8, 6.3


def short(name: str, room: float, letter: float = BOLD) -> str:
    """A name cut to fit a room of so many pixels.

    >>> short("Female", 100.0), short("Amer-Indian-Eskimo", 70.0)
    ('Female', 'Amer-In…')
    """
    most = max(3, int(room / letter))
    return name if len(name) <= most else f"{name[: most - 1]}…"


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


@dataclass(frozen=True)
class Axes:
    """Times across a frame, and values from `low` to `high` up."""

    frame: Frame
    time: StretchedAxis
    low: float
    high: float

    def x(self, times: np.ndarray | float) -> np.ndarray:
        return np.asarray(self.frame.left + self.time.place(times) * self.frame.room)

    def y(self, values: np.ndarray | float) -> np.ndarray:
        part = (np.asarray(values, dtype=float) - self.low) / (self.high - self.low)
        return np.asarray(self.frame.bottom - np.clip(part, -0.02, 1.02) * self.frame.height)

    def levels(self, levels: Iterable[tuple[float, str]]) -> list[str]:
        """A line across for every value, with its words."""
        left, parts = self.frame.left, []
        for value, words in levels:
            height = float(self.y(value))
            parts.append(svg.line(left, height, left + self.frame.room, height, "grid"))
            parts.append(svg.text(left - 5, height + 4, words, "tick", "end"))
        return parts

    def moments(self, least: float = 46.0) -> list[str]:
        """Times below the frame, with `least` pixels between them."""
        parts = []
        for time in self.time.ticks(self.frame.room, least):
            x, bottom = float(self.x(time)), self.frame.bottom
            parts.append(svg.line(x, bottom, x, bottom + 4, "axis"))
            anchor = "middle" if x < self.frame.width - 40 else "end"
            parts.append(svg.text(x, bottom + 17, moment(time), "tick", anchor))
        return parts
