"""labelled_points: one number against another, one colour and shape per series, with the diagonal of equality."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from tiltmeter.plot.run_channels import run_channels
from tiltmeter.plot.theme import FAINT, airy, axis, frame, rows, short
from tiltmeter.visible_text import visible

SIDE = 340


def labelled_points(
    marks: Sequence[tuple[str, str, float, float]], x_title: str, y_title: str, title: str | None = None
) -> alt.LayerChart:
    """Marks (series, label, x, y): series differ in colour and shape, labels show on hover.

    >>> chart = labelled_points([("digits", "balanced", 0.5, 0.6), ("digits", "plain", 1, 1)], "forecast", "trained")
    >>> chart.to_dict()["layer"][0]["mark"]["type"]
    'line'
    """
    drawn: list[dict[str, Any]] = [
        {"run": visible(series), "label": visible(label), "x": short(x), "y": short(y)} for series, label, x, y in marks
    ]
    known = [value for row in drawn for value in (row["x"], row["y"]) if value is not None]
    if not known:
        raise ValueError("There is nothing to draw: no mark has a value.")
    low, high = airy(min(known), max(known))
    scale = alt.Scale(domain=[low, high], nice=False)
    x, y = alt.X("x:Q", scale=scale, axis=axis(x_title)), alt.Y("y:Q", scale=scale, axis=axis(y_title))
    channels = run_channels(list(dict.fromkeys(series for series, *_ in marks)), title=None)
    ends = [{"x": short(low), "y": short(low)}, {"x": short(high), "y": short(high)}]
    layers = [
        alt.Chart(rows(ends)).mark_line(color=FAINT, strokeDash=[4, 4], strokeWidth=1).encode(x, y),
        alt.Chart(rows(drawn))
        .mark_point(size=46, strokeWidth=1.6, opacity=0.9)
        .encode(x, y, channels.colour, channels.shape, alt.Tooltip("label:N")),
    ]
    return alt.LayerChart(layer=layers).properties(**frame(title, SIDE, SIDE))
