"""Time-scale rules: vertical lines at the student's time scales, labelled with τ and a subscript."""

from __future__ import annotations

import altair as alt
import numpy as np
import xarray as xr

from tiltmeter.plot.theme import FAINT, INK, rows
from tiltmeter.plot.time_axis import Domain, log_scale, pixels

FONT, SMALL, ROW = 13, 9, 16
#: Time scales closer than this share one line and one label.
SAME = 3.0


def timescale_layers(
    timescales: xr.Dataset, domain: Domain, width: float, height: float, *, labels: bool = True
) -> tuple[list[alt.Chart], float]:
    """The vertical lines and their labels above the frame, and the height of the labels."""
    marks = marked(timescales, domain, width)
    if not marks:
        return [], 0.0
    levels = rows_without_overlap([(pixels(time, domain, width), len(name)) for name, time in marks])
    data = rows(
        [{"time": time, "name": name, "y": -6 - ROW * level} for (name, time), level in zip(marks, levels, strict=True)]
    )
    base = alt.Chart(data).encode(alt.X("time:Q", scale=log_scale(domain)))
    rules = [base.mark_rule(color=FAINT, strokeWidth=1, strokeDash=[3, 3]).encode(y=alt.value(0), y2=alt.value(height))]
    if not labels:
        return rules, 0.0
    # Unicode has no subscript capitals: the subscript is a second, smaller text.
    y = alt.Y("y:Q", scale=None, axis=None)
    greek = base.mark_text(align="right", baseline="alphabetic", fontSize=FONT, fontStyle="italic", color=INK)
    lower = base.mark_text(align="left", baseline="alphabetic", fontSize=SMALL, dx=0.5, dy=2, color=INK)
    return [*rules, greek.encode(y, text=alt.value("τ")), lower.encode(y, text="name:N")], float(
        5 + ROW * (1 + max(levels))
    )


def marked(timescales: xr.Dataset, domain: Domain, width: float) -> list[tuple[str, float]]:
    """Names and times of the time scales inside the axis, in order of time; those at the same position are joined."""
    if not isinstance(timescales, xr.Dataset):
        raise TypeError(f"`timescales` should be the Dataset of `tm.timescales`. Found {type(timescales).__name__}.")
    found: list[tuple[str, float]] = []
    for name, values in timescales.data_vars.items():
        grid = [str(dim) for dim in values.dims if dim != "mode"]
        if grid:
            raise ValueError(f"`timescales` has a grid over {', '.join(grid)}: select one point with `.sel`.")
        flat = np.atleast_1d(values.values)
        found += [(f"{name}{i + 1}" if flat.size > 1 else str(name), float(time)) for i, time in enumerate(flat)]
    joined: list[tuple[str, float]] = []
    for name, time in sorted(found, key=lambda item: item[1]):
        if not domain[0] <= time <= domain[1]:
            continue
        if joined and abs(pixels(time, domain, width) - pixels(joined[-1][1], domain, width)) < SAME:
            joined[-1] = (f"{joined[-1][0]},{name}", joined[-1][1])
        else:
            joined.append((name, time))
    return joined


def rows_without_overlap(labels: list[tuple[float, int]]) -> list[int]:
    """For labels (pixel, letters) in order, the lowest row in which each does not overlap the previous one.

    >>> rows_without_overlap([(10.0, 1), (18.0, 1), (80.0, 1)])
    [0, 1, 0]
    """
    ends: list[float] = []
    levels = []
    for place, letters in labels:
        left, right = place - 0.7 * FONT, place + 0.8 * SMALL * letters + 3
        level = next((i for i, end in enumerate(ends) if end < left), len(ends))
        ends[level : level + 1] = [right]
        levels.append(level)
    return levels
