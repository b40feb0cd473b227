"""The frontier: error of the population against unfairness, for several ways of training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np
import xarray as xr

import tiltmeter as tm

Criterion = tm.fairness.criteria.Criterion

SIDE = 340
#: One shape of mark for each way of training.
MARKS = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


def trade_off(found: xr.Dataset, criterion: Criterion) -> np.ndarray:
    """(unfairness, error of the population) of every grid point that has both, shape (n, 2).

    >>> problem = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> ridges = xr.DataArray([0.01, 0.3, 3.0], dims="ridge")
    >>> result = tm.equilibrium(problem, tm.Logistic(), samples=2.0, ridge=ridges)
    >>> trade_off(result, tm.fairness.criteria.AccuracyParity()).round(3).tolist()
    [[0.105, 0.247], [0.089, 0.253], [0.068, 0.272]]

    Args:
        found: Result of `equilibrium` over a grid.
        criterion: Unfairness, one of `tm.fairness.criteria`.
    """
    unfair, error = xr.broadcast(criterion.of(found), found["population_error"])
    points = np.stack([np.ravel(unfair), np.ravel(error)], axis=1)
    return np.asarray(points[np.isfinite(points).all(axis=1)])


def unbeaten(points: np.ndarray) -> np.ndarray:
    """The points that no other beats in both columns, sorted by the first column.

    >>> unbeaten(np.array([[0.1, 0.5], [0.2, 0.3], [0.3, 0.4]])).tolist()
    [[0.1, 0.5], [0.2, 0.3]]

    Args:
        points: Two columns, in both of which less is better.
    """
    ordered = points[np.lexsort((points[:, 1], points[:, 0]))]
    lowest = np.append(np.inf, np.minimum.accumulate(ordered[:, 1])[:-1])
    return np.asarray(ordered[ordered[:, 1] < lowest])


def frontier(found: Mapping[str, xr.Dataset], criterion: Criterion, title: str | None = None) -> alt.LayerChart:
    """Error of the population against unfairness, one colour and shape per way of training: low and left is better.

    >>> problem = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> coupled = tm.equilibrium(problem, tm.Square(), 2.0, 0.3, coupling=("coupling", [0.0, 0.3, 1.0]))
    >>> frontier({"coupled": coupled}, tm.fairness.criteria.AccuracyParity()).to_dict()["layer"][0]["mark"]["type"]
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
    theme, names = tm.plot.theme, list(found)
    marks: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    for name, one in found.items():
        points = trade_off(one, criterion)
        marks += [{"x": theme.short(a), "y": theme.short(b), "series": name} for a, b in points]
        lines += [{"x": theme.short(a), "y": theme.short(b), "series": name} for a, b in unbeaten(points)]
    if not marks:
        raise ValueError("There is nothing to draw: no grid point has a value.")
    spans = [theme.airy(min(row[key] for row in marks), max(row[key] for row in marks)) for key in ("x", "y")]
    x = alt.X(
        "x:Q", scale=alt.Scale(domain=list(spans[0]), nice=False), axis=theme.axis(f"unfairness ({criterion.name})")
    )
    y = alt.Y("y:Q", scale=alt.Scale(domain=list(spans[1]), nice=False), axis=theme.axis("error of the population"))
    shared: dict[str, Any] = {"field": "series", "type": "nominal", "sort": None, "legend": theme.legend("training")}
    colours = [theme.PALETTE[i % len(theme.PALETTE)] for i in range(len(names))]
    colour = alt.Color(scale=alt.Scale(domain=names, range=colours), **shared)
    shapes = [MARKS[i % len(MARKS)] for i in range(len(names))]
    shape = alt.Shape(scale=alt.Scale(domain=names, range=shapes), **shared)
    layers = [
        alt.Chart(theme.rows(lines)).mark_line(strokeWidth=2).encode(x, y, colour),
        alt.Chart(theme.rows(marks))
        .mark_point(size=36, strokeWidth=1.4, fill="white", opacity=1.0)
        .encode(x, y, colour, shape),
    ]
    return alt.LayerChart(layer=layers).properties(
        **theme.frame(
            title,
            SIDE * 1.3,
            SIDE,
            shows="Error of the population against unfairness",
            note="Lines join what no other point beats.",
        )
    )
