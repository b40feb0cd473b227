"""Drivers of the gap: contributions stacked over log time, adding up to the gap itself."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from tiltmeter.plot.offline_charts import Layers
from tiltmeter.plot.theme import (
    AREA_SYMBOL,
    INK,
    LINE_SYMBOL,
    WIDTH,
    airy,
    axis,
    frame,
    legend,
    rows,
    short,
)
from tiltmeter.plot.theme import HEIGHT as FULL_HEIGHT
from tiltmeter.plot.time_axis import thinned, time_axis, time_domain
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.drivers import DRIVERS

PARTS = (*DRIVERS, "rest")
#: Colours that no group has, and that differ as three greys; the rest is grey.
COLOURS = {"shift": "#00795A", "variance": "#F0E442", "representation": "#CC79A7", "rest": "#BBBBBB"}
GAP = "loss gap"


def drivers(trajectory: Trajectory, title: str | None = None) -> alt.LayerChart:
    """The result of `tm.drivers`: positive contributions above zero, negative below, the loss gap as a black line.

    >>> from tiltmeter.theory import cases
    >>> from tiltmeter.theory.drivers import drivers as split
    >>> chart = drivers(split(*cases.three_phases()))
    >>> [layer["mark"]["type"] for layer in chart.to_dict()["layer"]]
    ['area', 'rule', 'line', 'point']

    Above zero the first group of the pair has the larger loss, so the second leads. The contributions add up to the
    line at every time.

    What it does not mean: a contribution says what removing that asymmetry of the data would change on average, not
    that it alone causes the gap.

    Args:
        trajectory: Result of `tm.drivers`.
        title: Text above the picture; None: what it shows.
    """
    if not isinstance(trajectory, Trajectory):
        raise TypeError(f"`plot.drivers` draws the trajectory of `tm.drivers`. Found {type(trajectory).__name__}.")
    missing = [name for name in ("loss_gap", *PARTS) if name not in trajectory]
    if missing:
        raise KeyError(
            f"`plot.drivers` draws the trajectory of `tm.drivers`: no curve {missing[0]!r} here. "
            f"There are: {', '.join(trajectory) or 'none'}."
        )
    gap = trajectory["loss_gap"]
    extra = [str(dim) for dim in gap.dims if dim != "time"]
    if extra:
        raise ValueError(f"`plot.drivers` draws one problem; this one has a grid over {', '.join(extra)}.")
    times = gap.coords["time"].values
    domain = time_domain(times)
    places = thinned(times)
    values = {name: trajectory[name].values[places] for name in PARTS}
    shown = [name for name in PARTS if name != "rest" or np.nanmax(np.abs(values[name])) > 1e-9]
    names = [*shown, GAP]
    x = time_axis(trajectory.clock, domain)
    pair = trajectory.origin.settings.get("pair")
    order = f"({pair[0]} minus {pair[1]})" if isinstance(pair, list) else "(first minus second group)"
    y_axis = axis(["loss gap and its parts", order])
    shared: dict[str, Any] = {"field": "part", "type": "nominal", "sort": None, "legend": legend(None)}
    colours = alt.Scale(domain=names, range=[*(COLOURS[name] for name in shown), INK])
    fill = alt.Fill(scale=colours, **shared)
    stroke = alt.Stroke(scale=colours, **shared)
    shape = alt.Shape(scale=alt.Scale(domain=names, range=[*(AREA_SYMBOL for _ in shown), LINE_SYMBOL]), **shared)
    piles = stacked(times[places], {name: values[name] for name in shown})
    tops = [row["high"] for row in piles if row["high"] is not None]
    scale = alt.Scale(domain=list(airy(min(tops, default=0.0), max(tops, default=0.0))), nice=False)
    low, value = (alt.Y(f"{field}:Q", scale=scale, axis=y_axis) for field in ("low", "value"))
    areas = alt.Chart(rows(piles))
    line = [
        {"time": short(time), "part": GAP, "value": short(value)}
        for time, value in zip(times[places], gap.values[places], strict=True)
    ]
    layers = [
        areas.mark_area(stroke="white", strokeWidth=0.7).encode(x, low, alt.Y2("high:Q"), fill, alt.Detail("side:N")),
        alt.Chart(rows([{"value": 0.0}])).mark_rule(color=INK, strokeWidth=0.8).encode(value),
        alt.Chart(rows(line)).mark_line(strokeWidth=2.5).encode(x, value, stroke),
        alt.Chart(rows([])).mark_point().encode(fill, stroke, shape),
    ]
    return Layers(layer=layers).properties(
        **frame(title, WIDTH, FULL_HEIGHT, shows="Contributions to the difference in loss over time")
    )


def stacked(times: np.ndarray, parts: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """The position of each part: positive parts stacked upwards from zero, negative parts downwards.

    >>> [(row["part"], row["low"], row["high"]) for row in stacked(np.ones(1), {"a": np.array([2.0]),
    ...  "b": np.array([1.0])}) if row["side"] == "above"]
    [('a', 0.0, 2.0), ('b', 2.0, 3.0)]

    The two sides are separate areas, so that a part that changes sign does not jump across the stack.
    """
    found = []
    for side, sign in (("above", 1.0), ("below", -1.0)):
        base = np.zeros(times.size)
        for name, values in parts.items():
            top = base + sign * np.maximum(sign * values, 0.0)
            for time, low, high in zip(times, base, top, strict=True):
                found.append({"time": short(time), "part": name, "side": side, "low": short(low), "high": short(high)})
            base = top
    return found
