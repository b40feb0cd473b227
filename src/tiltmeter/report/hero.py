"""Hero: the headline's curve over training, and from when on its difference is clear."""

from __future__ import annotations

import re

import numpy as np
import xarray as xr

from tiltmeter.report import svg
from tiltmeter.report.axes import BOLD, Axes, Frame, short, stretched_axis
from tiltmeter.report.findings import Findings, Row
from tiltmeter.report.wording import number, when
from tiltmeter.shown_text import percent

WIDE, NARROW = Frame(570.0, 46.0, 156.0, height=280.0), Frame(360.0, 44.0, 138.0, height=220.0)


def hero(found: Findings) -> str:
    """Two pictures of the same: one for a wide page and one for a narrow one."""
    return "".join(_draw(found, frame, kind) for frame, kind in ((WIDE, "wide"), (NARROW, "narrow")))


def _draw(found: Findings, frame: Frame, kind: str) -> str:
    row = found.headline
    assert row.course is not None
    times = row.course.coords["time"].values.astype(float)
    axes = _axes(found, frame)
    parts = [*_grid(found, axes), *_lines(found, axes)]
    start = found.clear_from
    if start > times[0]:
        x = float(axes.x(start))
        parts.insert(0, svg.box(x, frame.top, frame.left + frame.room - x, frame.height, "zone"))
        anchor, shift = ("end", -4) if x > frame.left + frame.room / 2 else ("start", 4)
        parts.append(svg.text(x + shift, frame.top - 8, f"clear from {when(found.clock, start)} on", "ann", anchor))
    finding = f"At {when(found.clock, found.last)}: " + ", ".join(
        f"{name} {in_row(found, row, one.value)}" for name, one in zip(found.names, row.values, strict=True)
    )
    title = f"{row.term.title} of every group by {found.clock}"
    return svg.picture(frame.width, frame.bottom + 44, parts, title, finding, kind)


def _axes(found: Findings, frame: Frame) -> Axes:
    """Shares from 0 to a round number, other numbers fitted."""
    row = found.headline
    assert row.course is not None
    values = _values(found, row)
    finite = values[np.isfinite(values)]
    low, high = min(0.0, float(finite.min(initial=0.0))), float(finite.max(initial=0.0))
    if row.term.share:
        high = next(top for top in (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0) if top >= min(high, 1.0))
    elif high > 0:
        high = _round_above(high)
    axis = stretched_axis(row.course.coords["time"].values.astype(float), _changes(found))
    return Axes(frame, axis, low, high if high > low else low + 1.0)


def _round_above(value: float) -> float:
    """The next value whose quarters are round.

    >>> round(_round_above(0.498), 9), _round_above(1.3), _round_above(27.0)
    (0.6, 1.6, 32.0)
    """
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(m * power for m in (1.0, 1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 6.0, 8.0, 10.0) if m * power >= value))


def _values(found: Findings, row: Row) -> np.ndarray:
    """Everything that should fit into the frame: the curve and its seeds, of groups with enough points."""
    enough = [place for place in range(len(found.groups)) if found.enough(place)]
    return np.asarray(found.run[row.term.curve].isel(group=enough or slice(None)).values, dtype=float)


def _grid(found: Findings, axes: Axes) -> list[str]:
    frame, share = axes.frame, found.headline.term.share
    digits = 0 if axes.high >= 0.1 else 1
    levels = np.linspace(axes.low, axes.high, 5).tolist()
    parts = axes.levels([(one, percent(one, digits) if share else f"{one:.4g}") for one in levels])
    parts += axes.moments()
    name = "t" if found.clock == "t" else f"training {found.clock}s"
    name += " (model updates)" if found.clock == "step" else ""
    if axes.time.bend < (axes.time.last - axes.time.first) / 10:
        name += ", early ones drawn wider"
    parts.append(svg.text(frame.width / 2 - 20, frame.bottom + 36, name, "tick", "middle"))
    return parts


def _lines(found: Findings, axes: Axes) -> list[str]:
    row, kinds = found.headline, found.colours
    assert row.course is not None
    times = row.course.coords["time"].values.astype(float)
    x = axes.x(times)
    error = found.run.get(f"{row.term.curve}_se")
    areas, parts, labels = [], [], []
    order = sorted(range(len(found.groups)), key=lambda place: kinds[place] != "rest")
    for place in order:
        if not found.enough(place) and kinds[place] == "rest":
            continue
        values = row.course.values[:, place]
        if error is not None and kinds[place] != "rest":
            width = 2 * _error(found, error, place)
            low, high = values - width, values + width
            if row.term.share:
                low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
            areas.append(svg.area(x, axes.y(low), axes.y(high), f"band {kinds[place]}"))
        parts += _seeds(found, x, axes, place, kinds[place])
        parts.append(svg.path(x, axes.y(values), f"line {kinds[place]}"))
        if kinds[place] != "rest":
            labels.append(place)
    if found.many and found.evaluation is not None and row.judged:
        parts.append(svg.path(x, axes.y(_others(row, found.focus)), "line all"))
    return [
        *areas,
        *parts,
        *_labels(found, [place for place in labels if np.isfinite(row.values[place].value)], axes),
    ]


def _error(found: Findings, error: xr.DataArray, place: int) -> np.ndarray:
    """The standard error of a group's mean over seeds: seeds share their points, so these do not average out."""
    curve = found.run[found.headline.term.curve]
    error = error.sel(time=curve.coords["time"])
    if "seed" not in curve.dims:
        return np.asarray(error.transpose("time", "group").values[:, place], dtype=float)
    of_points = error.mean("seed") if "seed" in error.dims else error
    spread = curve.transpose("time", "group", "seed").values[:, place].std(axis=-1, ddof=1) if found.seeds > 1 else 0.0
    points = of_points.transpose("time", "group").values[:, place]
    return np.asarray(np.hypot(points, spread / np.sqrt(found.seeds)), dtype=float)


def _labels(found: Findings, places: list[int], axes: Axes) -> list[str]:
    """Marks and names at the ends of lines, moved apart; a long name goes below its value."""
    row, kinds, frame = found.headline, found.colours, axes.frame
    end = frame.left + frame.room
    values = [in_row(found, row, row.values[place].value) for place in places]
    room = frame.right - 12
    long = any(BOLD * len(f"{value} {found.names[p]}") > room for p, value in zip(places, values, strict=True))
    long = long and len(places) <= 5  # more would not fit one above the other
    heights = [float(axes.y(row.values[place].value)) for place in places]
    apart = svg.spread(heights, 29.0 if long else 15.0, frame.top, frame.bottom - (12.0 if long else 4.0))
    parts = []
    for place, value, height, y in zip(places, values, heights, apart, strict=True):
        kind, name = kinds[place], found.names[place]
        parts.append(svg.mark(end, height, f"dot {kind}", square=place % 2 == 1))
        if long:
            parts.append(svg.text(end + 8, y - 2, value, f"lab {kind}"))
            parts.append(svg.text(end + 8, y + 11, short(name, room), f"lab {kind}"))
        else:
            fitting = short(name, room - BOLD * (len(value) + 1))
            parts.append(svg.text(end + 8, y + 4, f"{value} {fitting}", f"lab {kind}"))
    return parts


def _others(row: Row, focus: int | None) -> np.ndarray:
    """The mean of all groups but one, each by its share of the points that count."""
    assert row.course is not None
    sizes = np.array([0 if count is None else count[1] for count in row.counts], dtype=float)
    weights = sizes if sizes.sum() > 0 else np.ones(len(sizes))
    if focus is not None:
        weights = np.where(np.arange(len(weights)) == focus, 0.0, weights)
    values = row.course.values
    known = np.isfinite(values) * weights
    return np.asarray(np.nansum(np.where(np.isfinite(values), values, 0.0) * weights, axis=1) / known.sum(1))


def _seeds(found: Findings, x: np.ndarray, axes: Axes, place: int, kind: str) -> list[str]:
    curve = found.run[found.headline.term.curve]
    if "seed" not in curve.dims or kind == "rest":
        return []
    values = curve.transpose("time", "group", "seed").values[:, place]
    return [svg.path(x, axes.y(values[:, seed]), f"seed {kind}") for seed in range(min(values.shape[1], 12))]


def in_row(found: Findings, row: Row, value: float) -> str:
    """A value of a row; of the headline's row with the digits of the headline."""
    if not row.term.share:
        return number(value)
    told = re.search(r"\d+\.?(\d*) %", found.judged.headline.claim) if row is found.headline and row.clear else None
    return percent(value) if told is None else percent(value, len(told[1]) or int(value < 0.0095))


def _changes(found: Findings) -> np.ndarray:
    """Times that should be seen on the axis: where the headline's leaders change."""
    times = [float(stretch.first) for one in found.headline.judged for stretch in one.stretches[1:]]
    return np.array(sorted(times))
