"""Shares of variance: what explains each of several numbers, as a map of responses and parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import xarray as xr

from tiltmeter.plot.offline_charts import Layers
from tiltmeter.plot.theme import INK, PALETTE, SHAPES, airy, axis, curve_words, frame, large, legend, rows, short
from tiltmeter.shown_text import visible
from tiltmeter_lab.study.variance.shares import Shares


def cell_means(table: xr.DataArray, x: str, colour: str, title: str | None = None) -> Any:
    """The mean over seeds for each pair of levels, with 90 % intervals; other factors are averaged over first.

    >>> grid = xr.DataArray(np.arange(24.0).reshape(2, 3, 4), dims=("width", "lr", "seed"), name="gap")
    >>> picture = cell_means(grid, x="lr", colour="width")
    >>> [layer["mark"]["type"] for layer in picture.to_dict()["layer"]]
    ['circle', 'line', 'rule', 'point']

    The interval is that of the mean over seeds (Student's t). It does not show how other factors change the response.

    Args:
        table: Response with one dimension per factor and `seed`.
        x: Factor along the axis.
        colour: Factor with one colour per level.
        title: Text above the picture; None: what it shows.
    """
    for name in (x, colour):
        if name not in table.dims or name == "seed":
            listed = ", ".join(str(dim) for dim in table.dims if dim != "seed")
            raise KeyError(f"`cell_means` needs two factors of the table: {listed}. Found {name!r}.")
    if "seed" not in table.dims:
        raise ValueError("`cell_means` needs a table with the dimension `seed`.")
    from scipy.stats import t

    others = [dim for dim in table.dims if dim not in (x, colour, "seed")]
    values = table.mean(others).transpose(x, colour, "seed")
    labels = {name: _labels(table, name) for name in (x, colour)}
    dots: list[dict[str, Any]] = []
    means: list[dict[str, Any]] = []
    for i, across in enumerate(labels[x]):
        for j, shade in enumerate(labels[colour]):
            runs = values.values[i, j][np.isfinite(values.values[i, j])]
            if not len(runs):
                continue
            place = {"x": across, "colour": shade}
            dots += [{**place, "y": short(run)} for run in runs]
            half = t.ppf(0.95, len(runs) - 1) * runs.std(ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else 0.0
            mean = runs.mean()
            means.append({**place, "y": short(mean), "low": short(mean - half), "high": short(mean + half)})
    if not means:
        raise ValueError("There is nothing to draw: no cell has a value.")
    spread = [one["y"] for one in dots] + [one["low"] for one in means] + [one["high"] for one in means]
    domain = list(airy(min(spread), max(spread)))
    places = alt.X("x:N", sort=labels[x], axis=axis(x, labelAngle=0))
    shift = alt.XOffset("colour:N", sort=labels[colour])
    colours = [PALETTE[k % len(PALETTE)] for k in range(len(labels[colour]))]
    shades = alt.Color(
        "colour:N", sort=labels[colour], scale=alt.Scale(domain=labels[colour], range=colours), legend=legend(colour)
    )
    shapes = alt.Shape(
        "colour:N",
        sort=labels[colour],
        scale=alt.Scale(domain=labels[colour], range=[SHAPES[k % len(SHAPES)] for k in range(len(labels[colour]))]),
        legend=legend(colour),
    )
    words = curve_words(str(table.name or "response"))
    shows = large(f"{words} by {x} and {colour}")
    note = "Bars: 90 % intervals of the mean over seeds. Small dots: seeds."
    up = alt.Y("y:Q", scale=alt.Scale(domain=domain, nice=False), axis=axis(words))
    summary = alt.Chart(rows(means)).encode(places, shift, shades)
    layers = [
        alt.Chart(rows(dots)).mark_circle(size=14, opacity=0.35).encode(places, shift, shades, up),
        summary.mark_line(strokeWidth=1, opacity=0.5).encode(up),
        summary.mark_rule(strokeWidth=2).encode(alt.Y("low:Q"), alt.Y2("high:Q")),
        summary.mark_point(size=50, filled=True, opacity=1.0).encode(up, shapes),
    ]
    return Layers(layer=layers).properties(**frame(title, shows=shows, note=note))


def _labels(table: xr.DataArray, name: str) -> list[str]:
    return [visible(str(value)) for value in (table[name].values if name in table.coords else range(table.sizes[name]))]


SIZE = 54


def variance_shares(found: Sequence[Shares], parts: Sequence[str] | None = None, title: str | None = None) -> Any:
    """A map: one row for each response, one column for each part, the darker the larger its share.

    >>> import numpy as np, xarray as xr
    >>> from tiltmeter_lab import shares
    >>> grid = xr.DataArray(np.random.default_rng(0).normal(size=(2, 3, 5)), dims=("width", "lr", "seed"), name="gap")
    >>> picture = variance_shares([shares(grid, draws=20, permutations=0)])
    >>> picture.to_dict()["layer"][0]["mark"]["type"]
    'rect'

    Every square shows its share in per cent and its interval below.

    Args:
        found: Results of `lab.shares`, one row each.
        parts: Columns; None: the factors, the pairs that reach a twentieth somewhere, the rest and chance.
        title: Text above the picture; None: what it shows.
    """
    if not found:
        raise ValueError("`variance_shares` needs at least one result of `shares`. Found none.")
    columns = list(parts) if parts is not None else _columns(found)
    squares: list[dict[str, Any]] = []
    for one in found:
        held = {row.term: row for row in one.rows}
        for part in columns:
            if part in held:
                row = held[part]
                squares.append(
                    {
                        "response": curve_words(one.response),
                        "part": part,
                        "share": short(row.share),
                        "text": f"{row.share:.0%}",
                        "interval": f"{row.low:.0%}-{row.high:.0%}",
                    }
                )
    x = alt.X("part:N", sort=columns, axis=axis(None, orient="top", labelAngle=-30, labelLimit=200))
    y = alt.Y("response:N", sort=[curve_words(one.response) for one in found], axis=axis(None, labelLimit=240))
    scale = alt.Scale(domain=[0, 1], scheme="blues")
    colour = alt.Color("share:Q", scale=scale, legend=legend("share of variance", format="%"))
    base = alt.Chart(rows(squares)).encode(x, y)
    ink = alt.condition(alt.datum.share > 0.55, alt.value("white"), alt.value(INK))
    layers = [
        base.mark_rect(stroke="white").encode(colour),
        base.mark_text(fontSize=13, dy=-6).encode(alt.Text("text:N"), color=ink),
        base.mark_text(fontSize=9, dy=9).encode(alt.Text("interval:N"), color=ink),
    ]
    return Layers(layer=layers).properties(
        **frame(
            title,
            1.35 * SIZE * len(columns),
            SIZE * len(found),
            shows="What explains the differences between runs",
            note="Below each share: its interval.",
        )
    )


def _columns(found: Sequence[Shares]) -> list[str]:
    """Factors first, then pairs worth showing, then the rest and chance."""
    largest: dict[str, float] = {}
    for one in found:
        for row in one.rows:
            largest[row.term] = max(largest.get(row.term, 0.0), row.share)
    ends = ("rest", "seed")
    factors = [term for term in largest if " x " not in term and term not in ends]
    pairs = [term for term, share in largest.items() if " x " in term and share >= 0.05]
    return [*factors, *pairs, *(term for term in ends if term in largest)]
