"""feature_sweep: the picture of every group's curves against the number of random features or the width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import xarray as xr

import tiltmeter as tm

#: Lines of what was trained on are thinner, whatever the group.
THIN, WIDE = 1.1, 2.2


def feature_sweep(
    found: xr.Dataset,
    x: str = "features",
    curves: Sequence[str] = ("error", "training_error"),
    samples: float | None = None,
    title: str | None = None,
) -> alt.LayerChart:
    """Curves of every group against `x`, on a log axis; those of training are thin. `samples` marks x = samples.

    >>> from tiltmeter_lab.theory.random_features import random_features
    >>> problem = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> found = random_features(problem, [0.5, 1.0, 2.0, 4.0], samples=2.0)
    >>> [layer["mark"]["type"] for layer in feature_sweep(found, samples=2.0).to_dict()["layer"]]
    ['line', 'line', 'rule']

    Args:
        found: Result of `random_features`, or curves of networks with the dimension `x`.
        x: Dimension along the axis.
        curves: Curves to draw.
        samples: Marks the place where x equals it; None: no mark.
        title: Text above the picture; None: what it shows.
    """
    if not isinstance(found, xr.Dataset):
        raise TypeError(f"`feature_sweep` draws a Dataset, as of `random_features`. Found {type(found).__name__}.")
    for name in curves:
        if name not in found:
            raise KeyError(f"No curve {name!r}. There are: {', '.join(map(str, found))}.")
        if set(found[name].dims) != {x, "group"}:
            raise ValueError(f"`{name}` should have the dimensions {x!r} and 'group'. Found {found[name].dims}.")
    if not curves:
        raise ValueError("`curves` should name at least one curve. Found none.")
    theme = tm.plot.theme
    places = np.asarray(found.coords[x].values, dtype=float)
    values = np.concatenate([found[name].values.ravel() for name in curves])
    low, high = theme.airy(float(np.nanmin(values)), float(np.nanmax(values)))
    words = theme.axis("features per dimension" if x == "features" else x, format="~g")
    span = [float(places.min()), float(places.max())]
    across = alt.X("x:Q", scale=alt.Scale(type="log", domain=span, nice=False), axis=words)
    meaning = found[curves[0]].attrs.get("long_name", theme.curve_words(curves[0]))
    up = alt.Y("y:Q", scale=alt.Scale(domain=[low, high], nice=False, zero=False), axis=theme.axis(meaning))
    layers: list[alt.Chart] = []
    for name in curves:
        width = THIN if name.startswith("training") else WIDE
        line = alt.Chart(theme.rows(_points(found[name], x))).mark_line(strokeWidth=width, clip=True)
        layers.append(line.encode(across, up, *_by_group(found, curves)))
    if samples is not None:
        mark = alt.Chart(theme.rows([{"x": float(samples)}]))
        layers.append(mark.mark_rule(color=theme.INK, strokeDash=[2, 3], strokeWidth=1).encode(across))
    words_of_curve = theme.curve_words(curves[0])
    shows = f"{words_of_curve[:1].upper()}{words_of_curve[1:]} of each group by number of {x}"
    return alt.LayerChart(layer=layers).properties(**theme.frame(title, shows=shows))


def _points(curve: xr.DataArray, x: str) -> list[dict[str, Any]]:
    """One row for every point of the lines."""
    return [
        {"x": tm.plot.theme.short(place), "y": tm.plot.theme.short(float(curve.sel({x: place, "group": group}))),
         "group": str(group)}
        for group in curve.coords["group"].values.tolist()
        for place in sorted(curve.coords[x].values.tolist())
    ]  # fmt: skip


def _by_group(found: xr.Dataset, curves: Sequence[str]) -> tuple[alt.Color, alt.StrokeDash]:
    """Colours and dashes of the groups, as in all pictures."""
    theme = tm.plot.theme
    names = [str(group) for group in found.coords["group"].values.tolist()]
    both = len({name.startswith("training") for name in curves}) > 1
    legend = theme.legend("group (thin: training)" if both else "group")
    colours = [theme.PALETTE[i % len(theme.PALETTE)] for i in range(len(names))]
    dashes = [theme.DASHES[i % len(theme.DASHES)] for i in range(len(names))]
    return (
        alt.Color("group:N", sort=None, legend=legend, scale=alt.Scale(domain=names, range=colours)),
        alt.StrokeDash("group:N", sort=None, legend=legend, scale=alt.Scale(domain=names, range=dashes)),
    )
