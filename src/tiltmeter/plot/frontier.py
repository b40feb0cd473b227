"""The frontier: error of the population against unfairness, for several ways of training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import xarray as xr

from tiltmeter.plot.offline_charts import Layers
from tiltmeter.plot.theme import PALETTE, SHAPES, airy, axis, frame, legend, rows, short
from tiltmeter.population.criteria import Criterion, trade_off, unbeaten

SIDE = 340


def frontier(found: Mapping[str, xr.Dataset], criterion: Criterion, title: str | None = None) -> alt.LayerChart:
    """Error of the population against unfairness, one colour and shape per way of training: low and left is better.

    >>> from tiltmeter import Square, teacher_mixture
    >>> from tiltmeter.population.criteria import AccuracyParity
    >>> from tiltmeter.theory.equilibrium import coupled_equilibrium
    >>> problem = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> coupled = coupled_equilibrium(problem, Square(), 2.0, 0.3, ("coupling", [0.0, 0.3, 1.0]))
    >>> frontier({"coupled": coupled}, AccuracyParity()).to_dict()["layer"][0]["mark"]["type"]
    'line'

    Every grid point of a Dataset is a mark. The line joins the Pareto-optimal ones: no other of the same way of
    training is better in both.

    Args:
        found: Results of `equilibrium` over a grid, one per way of training.
        criterion: Unfairness along the axis, one of `tm.fairness.criteria`.
        title: Text above the picture; None: what it shows.
    """
    if not found:
        raise ValueError("`frontier` needs at least one Dataset by name. Found none.")
    names = list(found)
    marks: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    for name, one in found.items():
        points = trade_off(one, criterion)
        marks += [{"x": short(a), "y": short(b), "series": name} for a, b in points]
        lines += [{"x": short(a), "y": short(b), "series": name} for a, b in unbeaten(points)]
    if not marks:
        raise ValueError("There is nothing to draw: no grid point has a value.")
    spans = [airy(min(row[key] for row in marks), max(row[key] for row in marks)) for key in ("x", "y")]
    x = alt.X("x:Q", scale=alt.Scale(domain=list(spans[0]), nice=False), axis=axis(f"unfairness ({criterion.name})"))
    y = alt.Y("y:Q", scale=alt.Scale(domain=list(spans[1]), nice=False), axis=axis("error of the population"))
    shared: dict[str, Any] = {"field": "series", "type": "nominal", "sort": None, "legend": legend("training")}
    colours = [PALETTE[i % len(PALETTE)] for i in range(len(names))]
    colour = alt.Color(scale=alt.Scale(domain=names, range=colours), **shared)
    shapes = [SHAPES[i % len(SHAPES)] for i in range(len(names))]
    shape = alt.Shape(scale=alt.Scale(domain=names, range=shapes), **shared)
    layers = [
        alt.Chart(rows(lines)).mark_line(strokeWidth=2).encode(x, y, colour),
        alt.Chart(rows(marks))
        .mark_point(size=36, strokeWidth=1.4, fill="white", opacity=1.0)
        .encode(x, y, colour, shape),
    ]
    return Layers(layer=layers).properties(
        **frame(
            title,
            SIDE * 1.3,
            SIDE,
            shows="Error of the population against unfairness",
            note="Lines join what no other point beats.",
        )
    )
