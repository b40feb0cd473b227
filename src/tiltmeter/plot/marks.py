"""Marks: series as layers of a chart (bands, lines, points) with one legend for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np

from tiltmeter.plot.series import Series
from tiltmeter.plot.theme import INK, LINE_SYMBOL, airy, axis, legend, rows, short
from tiltmeter.plot.time_axis import thinned

#: Number of marks of one series: few enough to distinguish circles from triangles.
MARKS = 32


def series_layers(
    series: Sequence[Series], x: alt.X, y_title: str | list[str], legend_title: str | None
) -> list[alt.Chart]:
    """Bands at the bottom, then lines, then points.

    All share one legend: lines and marks are symbols of the same scales, and a line's symbol is a stroke.
    """
    y_scale = alt.Scale(domain=list(value_domain(series)), nice=False, zero=False)
    y, low = (alt.Y(f"{field}:Q", scale=y_scale, axis=axis(y_title)) for field in ("value", "low"))
    labels = [one.label for one in series]
    colours = alt.Scale(domain=labels, range=[one.style.colour for one in series])
    dashes = alt.Scale(domain=labels, range=[one.style.dash if one.mark == "line" else [1, 0] for one in series])
    symbols = alt.Scale(domain=labels, range=[LINE_SYMBOL if one.mark == "line" else one.style.shape for one in series])
    title = [*([legend_title] if legend_title else []), *_meanings(series)]
    shared: dict[str, Any] = {"field": "series", "type": "nominal", "sort": None, "legend": legend(title or None)}
    colour = alt.Color(scale=colours, **shared)
    dash = alt.StrokeDash(scale=dashes, **shared)
    shape = alt.Shape(scale=symbols, **shared)

    # Each band is a layer with a constant colour: a fill channel would fill the symbols of the legend, or remove it.
    areas = [
        alt.Chart(rows(_rows(one)))
        .mark_area(opacity=0.22, clip=True, fill=one.style.colour)
        .encode(x, low, alt.Y2("high:Q"))
        for one in series
        if one.low is not None
    ]
    lines = [row for one in series if one.mark == "line" for row in _within(_rows(one), one.until)]
    # Beyond its horizon a forecast is thin and in short dashes, whatever the dash pattern of its group.
    pale = [row for one in series if one.mark == "line" for row in _beyond(_rows(one), one.until)]
    points = [row for one in series if one.mark == "points" for row in _rows(one, MARKS) if row["value"] is not None]
    line = alt.Chart(rows(lines)).mark_line(strokeWidth=2, clip=True, strokeJoin="round", color=INK).encode(x, y)
    dots = alt.Chart(rows(points)).mark_point(size=42, strokeWidth=1.6, fill="white", opacity=1.0, color=INK)
    faint = alt.Chart(rows(pale)).mark_line(strokeWidth=1.4, strokeDash=[2, 3], clip=True, color=INK).encode(x, y)
    drawn: list[tuple[alt.Chart, list[dict[str, Any]], list[Any]]] = [
        (line, lines, [colour, dash]),
        (faint, pale, [colour]),
        (dots.encode(x, y), points, [colour, shape]),
    ]
    if labels == [""]:  # one curve without groups: no legend needed
        return [*areas, *(layer for layer, data, _ in drawn if data)]
    # The legend takes its symbols from a layer that draws nothing: a shape channel on lines would add marks to them.
    key = alt.Chart(rows([])).mark_point().encode(colour, dash, shape)
    return [*areas, *(layer.encode(*channels) for layer, data, channels in drawn if data), key]


def _meanings(series: Sequence[Series]) -> list[str]:
    """What the bands of a chart are."""
    promised = {one.promised for one in series if one.low is not None}
    return [
        "bands: ± 2 standard errors" if share is None else f"bands: {share:.0%} of trainings"
        for share in sorted(promised, key=lambda share: share or 0.0)
    ]


def _within(drawn: list[dict[str, Any]], until: float | None) -> list[dict[str, Any]]:
    return drawn if until is None else [row for row in drawn if row["time"] <= until]


def _beyond(drawn: list[dict[str, Any]], until: float | None) -> list[dict[str, Any]]:
    """The rest of a line, starting from the last row before `until`, so that the two parts join."""
    if until is None:
        return []
    inside = len(_within(drawn, until))
    return drawn[max(0, inside - 1) :] if inside < len(drawn) else []


def value_domain(series: Sequence[Series]) -> tuple[float, float]:
    """The range of all values and bands, with a margin."""
    drawn = [
        part[(one.times > 0) & np.isfinite(part)]
        for one in series
        for part in (one.middle, one.low, one.high)
        if part is not None
    ]
    values = np.concatenate([np.empty(0), *drawn])
    if values.size == 0:
        raise ValueError("There is nothing to draw: no value at any time after 0.")
    return airy(float(values.min()), float(values.max()))


def _rows(series: Series, most: int | None = None) -> list[dict[str, Any]]:
    places = thinned(series.times) if most is None else thinned(series.times, most)
    drawn = []
    for i in places:
        row: dict[str, Any] = {"time": short(series.times[i]), "series": series.label, "value": short(series.middle[i])}
        if series.low is not None and series.high is not None:
            row |= {"low": short(series.low[i]), "high": short(series.high[i])}
        drawn.append(row)
    return drawn
