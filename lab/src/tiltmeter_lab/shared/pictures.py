"""Pictures that several experiments share: lines, or marks with bars, by series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

import tiltmeter as tm

SIDE = 340


def lines(
    points: Sequence[tuple[float, float, str]],
    x: str,
    y: str,
    series: str,
    log_x: bool = False,
    log_y: bool = False,
    title: str | None = None,
    marks: bool = False,
    zero: bool = True,
) -> alt.LayerChart:
    """Lines through (x, y) points, one colour and dash per series, in the order of their appearance.

    >>> chart = lines([(1.0, 0.1, "a"), (2.0, 0.2, "a")], "width", "error", "net")
    >>> chart.to_dict()["layer"][0]["mark"]["type"]
    'line'

    `marks` also shows the points. `zero` draws a line at y = 0 if it lies within the picture.
    """
    if not points:
        raise ValueError("`lines` needs at least one point. Found none.")
    names = list(dict.fromkeys(name for _, _, name in points))
    data = tm.plot.theme.rows(
        [{"x": tm.plot.theme.short(a), "y": tm.plot.theme.short(b), "series": name} for a, b, name in points]
    )
    across, up = ([float(one[i]) for one in points if one[i] == one[i]] for i in (0, 1))
    kind_x: Any = "log" if log_x else "linear"
    kind_y: Any = "log" if log_y else "linear"
    span = [min(up), max(up)] if log_y else list(tm.plot.theme.airy(min(up), max(up)))
    horizontal = alt.X(
        "x:Q",
        scale=alt.Scale(type=kind_x, domain=[min(across), max(across)], nice=False),
        # With "~g" a linear axis rounds its ticks: 150 becomes 1.5e+2.
        axis=tm.plot.theme.axis(x, format="~g", **_decades(min(across), max(across)))
        if log_x
        else tm.plot.theme.axis(x, format="~f"),
    )
    # By default a logarithmic axis may leave out powers of ten.
    ticks = (
        tm.plot.theme.axis(y, format="~g", **_decades(min(up), max(up)))
        if log_y and min(up) > 0
        else tm.plot.theme.axis(y)
    )
    vertical = alt.Y("y:Q", scale=alt.Scale(type=kind_y, domain=span, nice=False, zero=False), axis=ticks)
    told: dict[str, Any] = {"field": "series", "type": "nominal", "sort": None}
    told["legend"] = tm.plot.theme.legend(series) if len(names) > 1 else None
    colours = [tm.plot.theme.PALETTE[i % len(tm.plot.theme.PALETTE)] for i in range(len(names))]
    dashes = [tm.plot.theme.DASHES[i % len(tm.plot.theme.DASHES)] for i in range(len(names))]
    colour = alt.Color(scale=alt.Scale(domain=names, range=colours), **told)
    dash = alt.StrokeDash(scale=alt.Scale(domain=names, range=dashes), **told)
    layers: list[alt.Chart] = [
        alt.Chart(data).mark_line(strokeWidth=2, clip=True).encode(horizontal, vertical, colour, dash)
    ]
    if marks:
        dots = alt.Chart(data).mark_point(size=42, strokeWidth=1.6, fill="white", opacity=1.0)
        layers.append(dots.encode(horizontal, vertical, colour))
    if zero and not log_y and span[0] < 0 < span[1]:
        level = alt.Chart(tm.plot.theme.rows([{"y": 0.0}])).mark_rule(color=tm.plot.theme.INK, strokeWidth=0.8)
        layers.append(level.encode(alt.Y("y:Q", scale=alt.Scale(domain=span, nice=False, zero=False))))
    return alt.LayerChart(layer=layers).properties(**tm.plot.theme.frame(title))


def loss_gaps(runs: Mapping[str, tm.Trajectory], time: str, series: str) -> alt.LayerChart:
    """The loss of + minus that of -, mean over seeds, one line per run."""
    points = []
    for name, run in runs.items():
        mean = run["loss"].mean("seed")
        gap = mean.sel(group="+") - mean.sel(group="-")
        points += [(float(t), float(gap.sel(time=t)), name) for t in gap.coords["time"].values if t > 0]
    return lines(points, time, "loss of + minus loss of -", series, log_x=True)


def _decades(low: float, high: float) -> dict[str, Any]:
    """Return ticks at powers of ten, or also at 2 and 5 times them if there are few."""
    powers = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1.0)
    steps = (1.0,) if np.log10(high / low) > 2.0 else (1.0, 2.0, 5.0)
    ticks = [float(f"{step * 10.0**power:.3g}") for power in powers for step in steps]
    return {"values": [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]}


def labelled_points(
    marks: Sequence[tuple[str, str, float, float]], x_title: str, y_title: str, title: str | None = None
) -> alt.LayerChart:
    """Marks (series, label, x, y): series differ in colour and shape, labels show on hover.

    >>> chart = labelled_points([("digits", "balanced", 0.5, 0.6), ("digits", "plain", 1, 1)], "forecast", "trained")
    >>> chart.to_dict()["layer"][0]["mark"]["type"]
    'line'

    Args:
        marks: One (series, label, x, y) per mark.
        x_title: Text of the horizontal axis.
        y_title: Text of the vertical axis.
        title: Text above the picture; None: what it shows.
    """
    theme = tm.plot.theme
    drawn: list[dict[str, Any]] = [
        {"run": series, "label": label, "x": theme.short(x), "y": theme.short(y)} for series, label, x, y in marks
    ]
    known = [value for row in drawn for value in (row["x"], row["y"]) if value is not None]
    if not known:
        raise ValueError("There is nothing to draw: no mark has a value.")
    low, high = theme.airy(min(known), max(known))
    scale = alt.Scale(domain=[low, high], nice=False)
    x, y = alt.X("x:Q", scale=scale, axis=theme.axis(x_title)), alt.Y("y:Q", scale=scale, axis=theme.axis(y_title))
    channels = tm.plot.run_channels(list(dict.fromkeys(series for series, *_ in marks)), title=None)
    ends = [{"x": theme.short(low), "y": theme.short(low)}, {"x": theme.short(high), "y": theme.short(high)}]
    layers = [
        alt.Chart(theme.rows(ends))
        .mark_line(color=theme.INK, opacity=0.4, strokeDash=[4, 4], strokeWidth=1)
        .encode(x, y),
        alt.Chart(theme.rows(drawn))
        .mark_point(size=46, strokeWidth=1.6, opacity=0.9)
        .encode(x, y, channels.colour, channels.shape, alt.Tooltip("label:N")),
    ]
    return alt.LayerChart(layer=layers).properties(
        **theme.frame(title, SIDE, SIDE, shows=f"{y_title[:1].upper()}{y_title[1:]} against {x_title}")
    )
