"""labelled_lines: one curve with a line per label of one dimension, over time or another ordered dimension."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap
from typing import Any

import altair as alt
import numpy as np
import xarray as xr

from tiltmeter.over_seeds import over_seeds
from tiltmeter.pairs import SURE
from tiltmeter.plot.marks import Series, series_layers
from tiltmeter.plot.offline_charts import Layers
from tiltmeter.plot.theme import (
    DASHES,
    FAINT,
    HEIGHT,
    INK,
    LETTER,
    PALETTE,
    GroupStyle,
    airy,
    axis,
    curve_words,
    frame,
    large,
    legend,
    rows,
    short,
)
from tiltmeter.plot.time_axis import log_scale, time_axis, time_domain
from tiltmeter.record.trajectory import Clock, Trajectory


def as_groups(trajectory: Trajectory, curve: str, dim: str) -> Trajectory:
    """The trajectory with only this curve and with its dimension renamed to `group`, so that `curves` gives each label
    a colour.

    >>> import xarray as xr
    >>> from tiltmeter.record import Origin
    >>> share = xr.DataArray([[0.2, 0.8]], dims=("time", "cue"), coords={"time": [1], "cue": ["shape", "colour"]})
    >>> as_groups(Trajectory({"share": share}, "step", Origin("example")), "share", "cue")["share"].dims
    ('time', 'group')

    Args:
        trajectory: Run to look at: theory, simulation, forecast or training.
        curve: Curve that is kept.
        dim: Dimension that becomes `group`.
    """
    values = trajectory[curve]
    if dim not in values.dims:
        raise ValueError(f"Curve {curve!r} has no dimension {dim!r}. There are: {', '.join(map(str, values.dims))}.")
    kept = {curve: values.rename({dim: "group"})}
    if f"{curve}_se" in trajectory:
        kept[f"{curve}_se"] = trajectory[f"{curve}_se"].rename({dim: "group"})
    return trajectory.replace(kept)


def angles(values: xr.DataArray, title: str | None = None) -> alt.LayerChart:
    """Values over `angle` in degrees as a line, averaged over seeds; dots mark the extremes.

    >>> wave = xr.DataArray(np.cos(np.radians(np.arange(0, 360, 5))), coords={"angle": np.arange(0, 360, 5)})
    >>> len(angles(wave).layer)
    3

    Args:
        values: Array with a dimension `angle` in degrees.
        title: Text above the picture; None: what it shows.
    """
    if "angle" not in values.dims:
        raise ValueError(f"`values` should have a dimension `angle`. Found dims {values.dims}.")
    mean = values.mean([dim for dim in values.dims if dim != "angle"])
    degrees = mean.coords["angle"].values
    height = np.abs(mean.values)
    top = (height > np.roll(height, 1)) & (height > np.roll(height, -1)) & (height > 0.5 * height.max())
    x = alt.X(
        "angle:Q",
        scale=alt.Scale(domain=[0, 360]),
        axis=axis("direction of the neuron, degrees", values=[*range(0, 361, 45)]),
    )
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(domain=list(airy(float(values.min()), float(values.max()))), nice=False, zero=False),
        axis=axis(str(values.attrs.get("long_name", values.name or "value"))),
    )
    line = [{"angle": float(a), "value": short(v)} for a, v in zip(degrees, mean.values, strict=True)]
    dots = [row for row, chosen in zip(line, top, strict=True) if chosen]
    return Layers(
        layer=[
            alt.Chart(rows([{"value": 0.0}])).mark_rule(color=FAINT, strokeDash=[2, 2]).encode(y),
            alt.Chart(rows(line)).mark_line(color=PALETTE[0], strokeWidth=2).encode(x, y),
            alt.Chart(rows(dots)).mark_point(color=PALETTE[1], filled=True, size=80, opacity=1.0).encode(x, y),
        ]
    ).properties(**frame(title, shows="Values by direction of the neuron", note="Dots: extremes."))


def reliance(bias: Mapping[str, xr.DataArray], title: str | None = None) -> alt.LayerChart:
    """Means over seeds with error bars of two standard errors, over the dimension `ratio`, at the last observation.

    >>> made = xr.DataArray([[[0.0, 0.1]]], dims=("time", "seed", "ratio"), coords={"time": [0], "ratio": [1.0, 10.0]})
    >>> len(reliance({"linear": made}).layer)
    3

    Args:
        bias: Arrays with a dimension `ratio`, by name.
        title: Text above the picture; None: what it shows.
    """
    if not bias:
        raise ValueError("There is nothing to draw: no kind of model.")
    drawn: list[dict[str, Any]] = []
    names, ends, ratios = list(bias), list[float](), list[float]()
    for name, values in bias.items():
        last = values.isel(time=-1)
        mean, scatter = over_seeds(last) if "seed" in last.dims else (last, 0.0 * last)
        error = SURE * scatter.fillna(0.0)
        ends += [*(mean - error).values.tolist(), *(mean + error).values.tolist()]
        ratios += mean["ratio"].values.tolist()
        drawn += [
            {"ratio": float(r), "value": short(m), "low": short(m - e), "high": short(m + e), "model": name}
            for r, m, e in zip(mean["ratio"].values, mean.values, error.values, strict=True)
        ]
    y_scale = alt.Scale(domain=list(airy(min(0.0, *ends), max(0.0, *ends))), nice=False, zero=False)
    ratios = sorted(set(ratios))
    x = alt.X(
        "ratio:Q",
        scale=alt.Scale(type="log", domain=[ratios[0], ratios[-1]]),
        axis=axis("amplification of the shortcut relative to the core", values=ratios),
    )
    y, low = (alt.Y(f"{part}:Q", scale=y_scale, axis=axis("bias towards the shortcut")) for part in ("value", "low"))
    scale = alt.Scale(domain=names, range=[PALETTE[i % len(PALETTE)] for i in range(len(names))])
    dashes = alt.Scale(domain=names, range=[DASHES[i % len(DASHES)] for i in range(len(names))])
    colour = alt.Color("model:N", scale=scale, sort=None, legend=legend(["bars: ± 2 standard errors"]))
    dash = alt.StrokeDash("model:N", scale=dashes, sort=None, legend=legend(["bars: ± 2 standard errors"]))
    zero = alt.Chart(rows([{"value": 0.0}])).mark_rule(color=FAINT, strokeDash=[2, 2]).encode(y)
    chart = alt.Chart(rows(drawn))
    return Layers(
        layer=[
            zero,
            chart.mark_rule(strokeWidth=1.5).encode(
                x, low, alt.Y2("high:Q"), alt.Color("model:N", scale=scale, sort=None)
            ),
            chart.mark_line(strokeWidth=2).encode(x, y, colour, dash),
        ]
    ).properties(**frame(title, shows="Reliance on the shortcut by its amplification"))


def labelled_lines(
    curve: xr.DataArray,
    dim: str,
    along: str = "time",
    null: xr.DataArray | float | None = None,
    title: str | None = None,
    y_title: str | None = None,
    clock: Clock = "step",
) -> alt.LayerChart:
    """The curve against log `along`, averaged over `seed` with a band of two standard errors, one line per `dim`.

    >>> steps = xr.DataArray([[1.0, 2.0], [3.0, 4.0]], dims=("time", "layer"),
    ...                      coords={"time": [1, 10], "layer": ["a", "b"]}, name="rank")
    >>> [one["mark"]["type"] for one in labelled_lines(steps, "layer", null=1.0).to_dict()["layer"]]
    ['line', 'text', 'point']

    The null value is averaged over all other dimensions.

    Args:
        curve: Array to draw.
        dim: Dimension with one line per label.
        along: Dimension along the axis.
        null: Null value, drawn in black: a number or a curve over `along`; None: none.
        title: Text above the picture; None: what it shows.
        y_title: Text of the vertical axis; None: the name of the curve.
        clock: What time counts: "step", "epoch", "round" or "t".
    """
    extra = [str(d) for d in curve.dims if d not in (along, dim, "seed")]
    if extra or dim not in curve.dims or along not in curve.dims:
        raise ValueError(
            f"`curve` should have the dimensions {along!r} and {dim!r}, and `seed` at most. Found {curve.dims}."
        )
    places = curve.coords[along].values.astype(float)
    covers = f" of the mean over {curve.sizes.get('seed', 1)} seeds"
    series = []
    for i, label in enumerate(curve.coords[dim].values.tolist()):
        values = curve.sel({dim: label}).transpose(along, ...)
        middle, margin = values.values, None
        if "seed" in values.dims:
            mean, error = over_seeds(values)
            middle, margin = mean.values, SURE * error.values if values.sizes["seed"] > 1 else None
        low, high = (None, None) if margin is None else (middle - margin, middle + margin)
        evaluations = GroupStyle(PALETTE[i % len(PALETTE)], DASHES[i % len(DASHES)], "circle")
        series.append(Series(str(label), "line", evaluations, places, middle, low, high, covers=covers))
    if null is not None:
        level = xr.zeros_like(curve) + null
        flat = level.mean([d for d in level.dims if d != along]).values
        series.append(Series("null", "line", GroupStyle(INK, [1, 3], "circle"), places, flat, None, None))
    domain = time_domain(places)
    x = time_axis(clock, domain)
    if along != "time":
        ticks = axis(along, values=places.tolist())
        x = alt.X("time:Q", scale=log_scale(domain), axis=ticks)
    named = y_title or curve_words(str(curve.name or "value"))
    shows = large(f"{named} of each {dim} over {'training' if along == 'time' else along}")
    words = wrap(y_title or str(curve.attrs.get("long_name", curve.name)), int(HEIGHT / (LETTER * 13)))
    return Layers(layer=series_layers(series, x, words, dim)).properties(**frame(title, shows=shows))
