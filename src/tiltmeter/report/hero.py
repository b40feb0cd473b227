"""Hero: the headline's curve over training, and below it who is better off by each measure, on one time axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.analysis.difference import Difference
from tiltmeter.names import NOBODY
from tiltmeter.report import svg
from tiltmeter.report.findings import Findings, Row
from tiltmeter.report.headline import MANY
from tiltmeter.report.onset import onset
from tiltmeter.report.stretched_axis import StretchedAxis, stretched_axis
from tiltmeter.report.wording import group_name, moment, number, percent, when

#: Strips of groups that are drawn; more are said to be left out.
MOST_STRIPS = 12


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


WIDE = Frame(620.0, 118.0, 112.0)
NARROW = Frame(360.0, 76.0, 84.0, height=220.0)


def hero(found: Findings) -> str:
    """Two pictures of the same: one for a wide page and one for a narrow one."""
    return "".join(_draw(found, frame, kind) for frame, kind in ((WIDE, "wide"), (NARROW, "narrow")))


def _draw(found: Findings, frame: Frame, kind: str) -> str:
    row = found.headline
    assert row.course is not None
    times = row.course.coords["time"].values.astype(float)
    axis = stretched_axis(times, _changes(found))
    scale = _Scale(row, frame, _values(found, row))
    parts = [*_grid(axis, scale, frame, found.clock), *_lines(found, axis, scale, frame)]
    start = onset(row.judged[0]) if found.two and row.judged else None
    if start is not None and start > times[0]:
        x = frame.left + float(axis.place(start)) * frame.room
        parts.append(svg.line(x, frame.top - 8, x, frame.bottom, "mark"))
        anchor, shift = ("end", -4) if x > frame.left + frame.room / 2 else ("start", 4)
        parts.append(svg.text(x + shift, frame.top - 10, f"shown from {when(found.clock, start)}", "ann", anchor))
    strips, low = _strips(found, axis, frame, frame.bottom + 42)
    finding = f"At {when(found.clock, found.last)}: " + ", ".join(
        f"{name} {_value(row, one.value)}" for name, one in zip(found.names, row.values, strict=True)
    )
    return svg.picture(frame.width, low + 8, [*parts, *strips], f"{row.term.title} of every group by {found.clock}", finding, kind)  # fmt: skip


class _Scale:
    """Values as heights; shares from 0 to a round number, other numbers fitted."""

    def __init__(self, row: Row, frame: Frame, values: np.ndarray) -> None:
        finite = values[np.isfinite(values)]
        high = float(finite.max(initial=0.0))
        low = min(0.0, float(finite.min(initial=0.0)))
        if row.term.share:
            high = next(top for top in (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0) if top >= min(high, 1.0))
        self.low, self.high = low, high if high > low else low + 1.0
        self._frame, self.share = frame, row.term.share

    def place(self, values: np.ndarray | float) -> np.ndarray:
        part = (np.asarray(values, dtype=float) - self.low) / (self.high - self.low)
        return np.asarray(self._frame.bottom - np.clip(part, -0.02, 1.02) * self._frame.height)

    def ticks(self) -> list[tuple[float, str]]:
        levels = np.linspace(self.low, self.high, 5)
        digits = 0 if self.high >= 0.1 else 1
        return [(float(one), percent(float(one), digits) if self.share else number(float(one))) for one in levels]


def _values(found: Findings, row: Row) -> np.ndarray:
    """Everything that should fit into the frame: the curve, and its seeds."""
    return np.asarray(found.run[row.term.curve].values, dtype=float)


def _grid(axis: StretchedAxis, scale: _Scale, frame: Frame, clock: str) -> list[str]:
    parts = []
    for value, words in scale.ticks():
        y = float(scale.place(value))
        parts.append(svg.line(frame.left, y, frame.left + frame.room, y, "grid"))
        parts.append(svg.text(frame.left - 5, y + 4, words, "tick", "end"))
    for time in axis.ticks(frame.room):
        x = frame.left + float(axis.place(time)) * frame.room
        parts.append(svg.line(x, frame.bottom, x, frame.bottom + 4, "axis"))
        parts.append(svg.text(x, frame.bottom + 17, moment(time), "tick", "middle"))
    parts.append(svg.text(frame.left + frame.room + 26, frame.bottom + 17, f"{clock}s" if clock != "t" else "t", "tick"))
    return parts


def colours(found: Findings) -> list[str]:
    """The class of every group: its colour, or grey where many groups leave room for the worst and the best only."""
    if len(found.groups) < MANY:
        return [f"g{place}" for place in range(len(found.groups))]
    worst, best = found.extremes
    return ["g0" if place == worst else "g1" if place == best else "rest" for place in range(len(found.groups))]


def _lines(found: Findings, axis: StretchedAxis, scale: _Scale, frame: Frame) -> list[str]:
    row, kinds = found.headline, colours(found)
    assert row.course is not None
    times = row.course.coords["time"].values.astype(float)
    x = frame.left + axis.place(times) * frame.room
    error = found.run.get(f"{row.term.curve}_se")
    parts, labels = [], []
    order = sorted(range(len(found.groups)), key=lambda place: kinds[place] != "rest")
    for place in order:
        values = row.course.values[:, place]
        if error is not None and kinds[place] != "rest":
            own = error.mean("seed") if "seed" in error.dims else error
            width = 2 * own.sel(time=row.course.coords["time"]).transpose("time", "group").values[:, place]
            low, high = values - width, values + width
            if row.term.share:
                low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
            parts.append(svg.area(x, scale.place(low), scale.place(high), f"band {kinds[place]}"))
        parts += _seeds(found, x, scale, place, kinds[place])
        parts.append(svg.path(x, scale.place(values), f"line {kinds[place]}"))
        if kinds[place] != "rest":
            labels.append(place)
    if len(found.groups) >= MANY and found.look is not None and row.judged:
        parts.append(svg.path(x, scale.place(_together(found, row)), "line all"))
    heights = [float(scale.place(row.values[place].value)) for place in labels]
    known = [(place, height) for place, height in zip(labels, heights, strict=True) if np.isfinite(height)]
    apart = svg.spread([height for _, height in known], 15.0, frame.top, frame.bottom)
    for (place, height), y in zip(known, apart, strict=True):
        end = frame.left + frame.room
        parts.append(svg.mark(end, height, f"dot {kinds[place]}", square=place % 2 == 1))
        parts.append(svg.text(end + 8, y + 4, f"{_short(found.names[place], frame)} {_value(row, row.values[place].value)}", f"lab {kinds[place]}"))  # fmt: skip
    return parts


def _together(found: Findings, row: Row) -> np.ndarray:
    """The mean of all groups, each by its share of the points that count."""
    assert row.course is not None
    sizes = np.array([0 if count is None else count[1] for count in row.counts], dtype=float)
    weights = sizes if sizes.sum() > 0 else np.ones(len(sizes))
    values = row.course.values
    known = np.isfinite(values) * weights
    return np.asarray(np.nansum(np.where(np.isfinite(values), values, 0.0) * weights, axis=1) / known.sum(1))


def _seeds(found: Findings, x: np.ndarray, scale: _Scale, place: int, kind: str) -> list[str]:
    curve = found.run[found.headline.term.curve]
    if "seed" not in curve.dims or kind == "rest":
        return []
    values = curve.transpose("time", "group", "seed").values[:, place]
    return [svg.path(x, scale.place(values[:, seed]), f"seed {kind}") for seed in range(min(values.shape[1], 12))]


def _short(name: str, frame: Frame) -> str:
    most = 10 if frame is NARROW else 13
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _value(row: Row, value: float) -> str:
    return percent(value, 0 if value >= 0.0995 else 1) if row.term.share else number(value)


def _changes(found: Findings) -> np.ndarray:
    """Times that should be seen on the axis."""
    times = [
        float(stretch.first) for row in found.rows.values() for one in row.judged for stretch in one.stretches[1:]
    ]
    return np.array(sorted(times))


def _strips(found: Findings, axis: StretchedAxis, frame: Frame, y: float) -> tuple[list[str], float]:
    """One strip for each measure (two groups) or for each group against the rest; and where the last one ends."""
    rows: list[tuple[str, Difference]] = []
    if found.two:
        title = "Who is better off, by each measure"
        rows = [(_strip_name(row), row.judged[0]) for row in found.rows.values() if row.judged and row.judged[0].judged]
    else:
        title = f"{found.headline.term.title}: each group against the rest"
        judged = [one for one in found.headline.judged if one.judged]
        judged.sort(key=lambda one: not one.sign.any())
        rows = [(group_name(one.pair[0]), one) for one in judged[:MOST_STRIPS]]
    if not rows:
        return [], y - 20
    parts = [svg.text(frame.left, y - 6, title, "sh")]
    for name, one in rows:
        parts.append(svg.text(frame.left - 5, y + 12, _short(name, frame), "sl", "end"))
        parts += _strip(found, one, axis, frame, y)
        y += 21
    return parts, y


def _strip_name(row: Row) -> str:
    short = {"tpr": "Found", "fpr": "Wrongly yes", "positive_rate": "Said yes", "error": "Error", "squared_error": "Sq. error"}
    return short.get(row.term.curve, row.term.title)


def _strip(found: Findings, one: Difference, axis: StretchedAxis, frame: Frame, y: float) -> list[str]:
    parts = []
    edges = [stretch.first for stretch in one.stretches] + [found.last]
    neither = found.rows[one.curve].term.better == "neither"
    for stretch, end in zip(one.stretches, edges[1:], strict=True):
        x0, x1 = (frame.left + float(axis.place(time)) * frame.room for time in (stretch.first, end))
        if stretch is one.stretches[-1]:
            x1 = frame.left + frame.room
        kind, words = _who(found, one, stretch.leader, neither)
        parts.append(svg.box(x0, y, max(x1 - x0, 1.5), 16, f"st {kind}"))
        fitting = next((text for text in words if 6.4 * len(text) + 8 < x1 - x0), None)
        if fitting:
            parts.append(svg.text((x0 + x1) / 2, y + 12, fitting, f"stx {kind}", "middle"))
    return parts


def _who(found: Findings, one: Difference, leader: object, neither: bool) -> tuple[str, list[str]]:
    if leader == NOBODY:
        return "none", ["no difference shown", "not shown"]
    if found.two:
        name = group_name(leader)  # type: ignore[arg-type]
        kind = f"g{found.groups.index(leader)}"  # type: ignore[arg-type]
        return kind, [f"{name} {'more' if neither else 'better off'}", name]
    ahead = leader == one.pair[0]
    return ("up", ["better off", "better"]) if ahead else ("down", ["worse off", "worse"])
