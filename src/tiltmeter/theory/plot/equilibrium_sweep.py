"""Trained students against a parameter: error and unfairness, theory as lines and experiments as marks."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from textwrap import wrap
from typing import Any

import altair as alt
import numpy as np
import xarray as xr

from tiltmeter.names import CURVES
from tiltmeter.over_seeds import over_seeds
from tiltmeter.pairs import SURE, groups_of, leader_sign
from tiltmeter.plot.offline_charts import Layers, Panels
from tiltmeter.plot.theme import (
    HEIGHT,
    INK,
    LETTER,
    LINE_SYMBOL,
    WIDTH,
    airy,
    axis,
    curve_words,
    frame,
    group_name,
    heading,
    large,
    legend,
    rows,
    short,
    style_of,
)
from tiltmeter.plot.time_axis import log_ticks, tick_labels
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.plot.phase_diagram import is_log_spaced

END, BEST = "at the last time", "at its best time"


def double_descent(trajectory: Trajectory, curve: str = "loss", title: str | None = None) -> alt.LayerChart:
    """Solid lines: every group at the last time; dashed: at the time that is best for it. Both axes may be logarithmic.

    >>> from tiltmeter import Fixed, Flow, predict, teacher_mixture
    >>> problem = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> sizes = Fixed(("samples", np.geomspace(0.4, 4.0, 9)))
    >>> few = predict(problem, Flow(lr=1.0), np.geomspace(0.1, 300.0, 60), data=sizes, curves=("loss",))
    >>> double_descent(few).to_dict()["layer"][0]["mark"]["type"]
    'line'

    If there are about as many examples as dimensions, groups that are trained to the end have a peak; groups that are
    stopped in time do not.

    The last time is not the end of training unless the times reach that far.

    Args:
        trajectory: Result of `predict` over one grid dimension, usually `samples`.
        curve: Name of the curve, such as "loss" or "error".
        title: Text above the picture; None: what it shows.
    """
    if not isinstance(trajectory, Trajectory):
        raise TypeError(
            f"`theory.plot.double_descent` draws a trajectory of `predict`. Found {type(trajectory).__name__}."
        )
    values = trajectory[curve]
    groups = groups_of(values)
    over = [str(dim) for dim in values.dims if dim not in ("time", "group")]
    if len(over) != 1:
        raise ValueError(
            f"`double_descent` draws over exactly one grid dimension. Found {', '.join(over) or 'none'}: pass "
            'data=Fixed(("samples", [...])).'
        )
    sizes = values.coords[over[0]].values
    better = leader_sign(curve, values)
    last = values.isel(time=-1)
    best = (values * better).min("time") * better
    data: list[dict[str, Any]] = []
    for group in groups:
        for kind, there in ((END, last), (BEST, best)):
            heights = there.sel(group=group).values
            data += [
                {"x": short(size), "y": short(height), "group": group_name(group), "when": kind}
                for size, height in zip(sizes, heights, strict=True)
            ]
    names = [group_name(group) for group in groups]
    heights = np.concatenate([last.values.ravel(), best.values.ravel()])
    heights = heights[np.isfinite(heights)]
    if not heights.size:
        raise ValueError(f"There is nothing to draw: {curve!r} has no value.")
    horizontal = alt.X(
        "x:Q", **_axis(sizes, f"{over[0]} (examples per dimension)" if over[0] == "samples" else over[0])
    )
    wide = heights.min() > 0 and heights.max() / heights.min() > 5.0
    vertical = alt.Y("y:Q", **_axis(heights, CURVES[curve].meaning if curve in CURVES else curve, wide))
    colours = [style_of(group, groups).colour for group in groups]
    colour = alt.Color("group:N", sort=None, scale=alt.Scale(domain=names, range=colours), legend=legend("group"))
    dash = alt.StrokeDash(
        "when:N", sort=None, scale=alt.Scale(domain=[END, BEST], range=[[1, 0], [5, 3]]), legend=legend(None)
    )
    line = alt.Chart(rows(data)).mark_line(strokeWidth=2, clip=True).encode(horizontal, vertical, colour, dash)
    return Layers(layer=[line]).properties(
        **frame(title, WIDTH, HEIGHT, shows=large(f"{curve_words(curve)} of each group by {over[0]}"))
    )


def _axis(values: np.ndarray, title: str, log: bool | None = None) -> dict[str, Any]:
    low, high = float(np.min(values)), float(np.max(values))
    if log if log is not None else is_log_spaced(np.sort(values)):
        ticks = log_ticks(low, high)
        scale = alt.Scale(type="log", domain=[low, high], nice=False)
        return {"scale": scale, "axis": axis(title, values=ticks, labelExpr=tick_labels(ticks))}
    return {"scale": alt.Scale(domain=[low, high], nice=False, zero=False), "axis": axis(title)}


#: Dimensions that belong to a curve and not to the grid over which it is drawn.
OWN = ("group", "pair", "seed")


def equilibrium_sweep(
    theory: xr.Dataset,
    measured: xr.Dataset | None = None,
    curves: Sequence[str] = ("error", "error_gap"),
    x: str | None = None,
    title: str | None = None,
) -> alt.VConcatChart:
    """Curves of trained students against one grid dimension, one panel each: by default the error and its gap.

    >>> from tiltmeter import Square, equilibrium as trained, teacher_mixture
    >>> problem = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> found = trained(problem, Square(), ("samples", [0.5, 1.0, 2.0, 4.0]), ridge=0.3)
    >>> len(equilibrium_sweep(found).to_dict()["vconcat"])
    2

    Gaps are between groups, first minus second. A geometric grid gets a log axis.

    Args:
        theory: Result of `tm.equilibrium`, drawn as lines.
        measured: The same curves of trained students, with a dimension `seed`: marks with two standard errors.
        curves: Curves to draw, one panel each.
        x: Grid dimension along the axis; None: the only one.
        title: Text above the picture; None: what it shows.
    """
    sets = [theory] if measured is None else [theory, measured]
    for one in sets:
        if not isinstance(one, xr.Dataset):
            raise TypeError(f"`equilibrium` draws Datasets of trained students. Found {type(one).__name__}.")
    if not curves:
        raise ValueError("`curves` should name at least one curve. Found none.")
    panels = []
    for name in curves:
        for one in sets:
            if name not in one:
                raise KeyError(f"No curve {name!r}. There are: {', '.join(map(str, one))}.")
        panels.append(_panel(theory[name], None if measured is None else measured[name], name, x))
    whole = Panels(vconcat=panels, spacing=18).resolve_scale(
        color="independent", strokeDash="independent", shape="independent"
    )
    across = _grid_dimension(theory[curves[0]], curves[0], x)
    bars = "" if measured is None else "Lines: theory. Marks: trained, with two standard errors."
    titled: alt.VConcatChart = whole.properties(title=heading(title or f"Trained students by {across}", bars))
    return titled


def _panel(theory: xr.DataArray, measured: xr.DataArray | None, name: str, x: str | None) -> alt.LayerChart:
    across = _grid_dimension(theory, name, x)
    places = np.asarray(theory.coords[across].values, dtype=float)
    every = labels_of(theory)
    evaluations = [style_of(label, every) for label in every]
    texts = ["" if label is None else group_name(label) for label in every]
    lines: list[dict[str, Any]] = []
    marks: list[dict[str, Any]] = []
    bars: list[dict[str, Any]] = []
    for label, text in zip(every, texts, strict=True):
        for place, value in zip(places, _one(theory, label, across), strict=True):
            lines.append({"x": short(place), "value": short(value), "series": text})
        if measured is not None:
            values = xr.DataArray(_one(measured, label, across, "seed"), dims=(across, "seed"))
            mean, error = (part.values for part in over_seeds(values.where(np.isfinite(values))))
            bars_at = SURE * np.nan_to_num(error)
            for place, value, bar in zip(measured.coords[across].values, mean, bars_at, strict=True):
                low, high = short(value - bar), short(value + bar)
                marks.append({"x": short(place), "value": short(value), "series": text})
                bars.append({"x": short(place), "low": low, "high": high, "series": text})
    spread = [row[key] for row in (*lines, *bars) for key in ("value", "low", "high") if row.get(key) is not None]
    if not spread:
        raise ValueError(f"There is nothing to draw: {name!r} has no value.")
    scale = alt.Scale(domain=list(airy(min(spread), max(spread))), nice=False, zero=False)
    meaning, words = str(theory.attrs.get("long_name", name)), curve_words(name)
    words = words if words.startswith("difference in") else f"{words} ({meaning})"
    horizontal = alt.X("x:Q", scale=_x_scale(places), axis=axis(_x_title(across), **_ticks(places)))
    y = alt.Y("value:Q", scale=scale, axis=axis(wrap(words, int(0.7 * HEIGHT / (LETTER * 13)))))
    shared: dict[str, Any] = {"field": "series", "type": "nominal", "sort": None, "legend": legend(_legend(theory))}
    colour = alt.Color(scale=alt.Scale(domain=texts, range=[one.colour for one in evaluations]), **shared)
    dash = alt.StrokeDash(scale=alt.Scale(domain=texts, range=[one.dash for one in evaluations]), **shared)
    symbol = alt.Shape(scale=alt.Scale(domain=texts, range=[LINE_SYMBOL] * len(texts)), **shared)
    alone = every == [None]
    told = [] if alone else [colour, dash]
    layers = [alt.Chart(rows(lines)).mark_line(strokeWidth=2, color=INK).encode(horizontal, y, *told)]
    if marks:
        rule = alt.Chart(rows(bars)).mark_rule(strokeWidth=1.4, color=INK)
        dots = alt.Chart(rows(marks)).mark_point(size=42, strokeWidth=1.6, fill="white", opacity=1.0, color=INK)
        top = alt.Y2("high:Q")
        layers += [
            rule.encode(horizontal, alt.Y("low:Q", scale=scale), top, *([] if alone else [colour])),
            dots.encode(horizontal, y, *([] if alone else [colour])),
        ]
    if not alone:
        layers.append(alt.Chart(rows([])).mark_point().encode(colour, dash, symbol))
    return Layers(layer=layers).properties(width=WIDTH, height=HEIGHT * 0.7)


def labels_of(values: xr.DataArray) -> list[Hashable]:
    """The groups, or pairs of groups, of a curve; None for a curve without any."""
    dim = next((dim for dim in ("group", "pair") if dim in values.dims), None)
    return [None] if dim is None else list(values.coords[dim].values.tolist())


def _one(values: xr.DataArray, label: Hashable, across: str, *ahead: str) -> np.ndarray:
    dim = next((dim for dim in ("group", "pair") if dim in values.dims), None)
    one = values if dim is None else values.isel({dim: labels_of(values).index(label)})
    return np.asarray(one.transpose(across, *ahead).values)


def _grid_dimension(values: xr.DataArray, name: str, x: str | None) -> str:
    dims = [str(dim) for dim in values.dims if dim not in OWN]
    if x is not None and x not in dims:
        raise KeyError(f"No grid dimension {x!r}. There are: {', '.join(dims) or 'none'}.")
    if len(dims) != 1:
        raise ValueError(
            f"`equilibrium` draws curve {name!r} over exactly one grid dimension. Found "
            f"{', '.join(dims) or 'none'}: select the others, as in found.sel({dims[-1] if dims else 'ridge'}=...)."
        )
    return dims[0]


def _geometric(places: np.ndarray) -> bool:
    if len(places) < 3 or (places <= 0).any():
        return False
    ratios = np.diff(np.log(places))
    return bool(np.abs(ratios).sum() > 1.5 and ratios.std() < np.diff(places).std() / np.abs(np.diff(places)).mean())


def _x_scale(places: np.ndarray) -> alt.Scale:
    kind = {"type": "log"} if _geometric(places) else {}
    return alt.Scale(domain=[float(places.min()), float(places.max())], nice=False, zero=False, **kind)  # type: ignore[arg-type]


def _ticks(places: np.ndarray) -> dict[str, Any]:
    """Ticks of a log axis at 1, 2, 5 times powers of ten; every label is a plain number."""
    if not _geometric(places):
        return {}
    powers = np.arange(np.floor(np.log10(places.min())), np.ceil(np.log10(places.max())) + 1)
    steps = (1.0, 2.0, 5.0) if len(powers) <= 4 else (1.0,)
    values = [float(f"{step * 10.0**power:.3g}") for power in powers for step in steps]
    shown = [value for value in values if places.min() * 0.999 <= value <= places.max() * 1.001]
    return {"values": shown, "format": "~g"}


def _x_title(across: str) -> str:
    return {"samples": "samples (examples per dimension)"}.get(across, across.replace("_", " "))


def _legend(values: xr.DataArray) -> str | None:
    return next((dim for dim in ("group", "pair") if dim in values.dims), None)
