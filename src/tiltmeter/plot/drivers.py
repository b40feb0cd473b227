"""Drivers of the gap: contributions stacked over log time, adding up to the gap itself."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

import altair as alt
import numpy as np
import xarray as xr

from tiltmeter.leaders.drivers import DRIVERS
from tiltmeter.leaders.memorisation import Memorisation
from tiltmeter.plot.curves import curves, same_clock
from tiltmeter.plot.marks import series_layers, series_of
from tiltmeter.plot.offline_charts import Layers, Panels
from tiltmeter.plot.theme import (
    AREA_SYMBOL,
    INK,
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
)
from tiltmeter.plot.theme import HEIGHT as FULL_HEIGHT
from tiltmeter.plot.time_axis import log_scale, thinned, time_axis, time_domain
from tiltmeter.plot.timescale_rules import timescale_layers
from tiltmeter.record.trajectory import Trajectory

ORDER_PARAMETERS = ("M", "R", "Q")
HEIGHT = 130


def order_parameters(
    trajectory: Trajectory, timescales: xr.Dataset | None = None, title: str | None = None
) -> alt.VConcatChart:
    """M (overlap with each group's mean), R (with its teacher) and Q (squared length), as far as recorded.

    >>> from tiltmeter import predict, timescales
    >>> from tiltmeter.problem import cases
    >>> problem, sgd, times = cases.three_phases()
    >>> chart = order_parameters(predict(problem, sgd, times, curves=("M", "R", "Q")), timescales(problem, sgd))
    >>> len(chart.to_dict()["vconcat"])
    3

    Time scales: τ_M along the means, τ_R across them, τ_Q for the length.

    Args:
        trajectory: Run to look at: theory, simulation, forecast or training.
        timescales: Marks when each converges, from `tm.timescales`; None: no marks.
        title: Text above the picture; None: what it shows.
    """
    if not isinstance(trajectory, Trajectory):
        raise TypeError(f"`order_parameters` draws a trajectory. Found {type(trajectory).__name__}.")
    names = [name for name in ORDER_PARAMETERS if name in trajectory]
    if not names:
        raise KeyError(f"`order_parameters` draws M, R and Q. This trajectory has: {', '.join(trajectory) or 'none'}.")
    if timescales is not None:
        same_clock("timescales", "t", trajectory.clock)
    domain = time_domain(np.concatenate([trajectory[name].coords["time"].values for name in names]))
    panels = []
    for name in names:
        series = series_of((trajectory,), name, None, None)
        x = time_axis(trajectory.clock, domain, labels=name == names[-1])
        rules: list[alt.Chart] = []
        if timescales is not None:
            rules, _ = timescale_layers(timescales, domain, WIDTH, HEIGHT, labels=name == names[0])
        shared = "group" in trajectory[name].dims
        meaning = str(trajectory[name].attrs.get("long_name", ""))
        drawn = series_layers(series, x, [name, *wrap(meaning, 20)], "group" if shared else None, HEIGHT)
        panels.append(Layers(layer=[*rules, *drawn]).properties(width=WIDTH, height=HEIGHT))
    return Panels(
        vconcat=panels, spacing=12, title=heading(title or "Overlaps of the student with each group over time")
    )


#: Dashes of the rules: crossings with fresh examples, and on the fixed set.
RULES = {"fresh examples": [2, 3], "fixed set": [1, 0]}


def memorisation(found: Memorisation, title: str | None = None) -> alt.LayerChart:
    """Curves of both trainings over log time; vertical rules at the crossings, dotted with fresh examples.

    >>> import numpy as np
    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> found = tm.fairness.memorisation(problem, tm.Flow(lr=1.0), np.geomspace(0.01, 100.0, 50), tm.Fixed(samples=2.0))
    >>> [layer["mark"]["type"] for layer in memorisation(found).to_dict()["layer"]][:2]
    ['rule', 'rule']

    A rule is where the leader changes, not where the gap is largest.

    Args:
        found: Result of `tm.fairness.memorisation`.
        title: Text above the picture; None: what it shows.
    """
    if not isinstance(found, Memorisation):
        raise TypeError(f"`plot.memorisation` draws the result of `memorisation`. Found {type(found).__name__}.")
    chart = curves(
        *found.trajectories,
        curve=found.curve,
        labels=tuple(RULES),
        title=title or "Fresh examples against a fixed set: rules where the leader changes",
    )
    times = np.concatenate([one[found.curve].coords["time"].values for one in found.trajectories])
    x = alt.X("time:Q", scale=log_scale(time_domain(times)))
    marks = []
    for (_, dash), led in zip(RULES.items(), (found.online, found.fixed), strict=True):
        if led.changes:
            data = alt.Chart(rows([{"time": one.time} for one in led.changes])).encode(x)
            rule = data.mark_rule(color=INK, strokeWidth=1, strokeDash=dash, opacity=0.6)
            marks.append(rule.encode(y=alt.value(0), y2=alt.value(FULL_HEIGHT)))
    return alt.LayerChart(layer=[*marks, *chart.layer]).properties(**_frame_of(chart))


def _frame_of(chart: alt.LayerChart) -> dict[str, object]:
    return {name: getattr(chart, name) for name in ("width", "height", "title") if not _undefined(getattr(chart, name))}


def _undefined(value: object) -> bool:
    return value is alt.Undefined


#: Width and height of a panel.
PANEL = {"width": 250, "height": 210}


def class_curves(trajectory: Trajectory, curve: str = "class_loss", title: str | None = None) -> alt.HConcatChart:
    """The curve of every class in a panel of its own, on one vertical scale; groups have the colours of `plot.curves`.

    >>> from tiltmeter import SGD, predict

    >>> from tiltmeter.problem import class_mixture
    >>> theory = predict(class_mixture(3, rho=0.7), SGD(lr=0.2), [0.1, 1.0, 10.0], curves=("class_loss",))
    >>> len(class_curves(theory).to_dict()["hconcat"])
    3

    It is about the inputs of one class; a class may cross between groups that do not (`class_leaders`).

    Args:
        trajectory: Run to look at: theory, simulation, forecast or training.
        curve: Curve with a dimension `class`.
        title: Text above the picture; None: what it shows.
    """
    if not isinstance(trajectory, Trajectory):
        raise TypeError(f"`plot.class_curves` draws a trajectory. Found {type(trajectory).__name__}.")
    values = trajectory[curve]
    if "class" not in values.dims or "decision" in values.dims:
        raise ValueError(
            f"`plot.class_curves` is for curves of groups and classes, as 'class_loss'. Found {curve!r}: use "
            "`plot.curves`."
        )
    names = [name for name in (curve, f"{curve}_se") if name in trajectory]
    panels = []
    for label in values.coords["class"].values.tolist():
        part = trajectory.replace({name: trajectory[name].sel({"class": label}, drop=True) for name in names})
        panels.append(curves(part, curve=curve, title=f"class {group_name(label)}").properties(**PANEL))
    chart: alt.HConcatChart = alt.hconcat(*panels).resolve_scale(y="shared")
    return chart.properties(title=heading(title or large(f"{curve_words(curve)} of every class over training")))


PARTS = (*DRIVERS, "rest")
#: Colours that no group has, and that differ as three greys; the rest is grey.
COLOURS = {"shift": "#00795A", "variance": "#F0E442", "representation": "#CC79A7", "rest": "#BBBBBB"}
GAP = "loss gap"


def drivers(trajectory: Trajectory, title: str | None = None) -> alt.LayerChart:
    """The result of `tm.drivers`: positive contributions above zero, negative below, the loss gap as a black line.

    >>> from tiltmeter.problem import cases
    >>> from tiltmeter.leaders.drivers import drivers as split
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
