"""labelled_lines: one curve with a line per label of one dimension, over time or another ordered dimension."""

from __future__ import annotations

from textwrap import wrap

import altair as alt
import xarray as xr

from tiltmeter.analysis.over_seeds import over_seeds
from tiltmeter.analysis.pairs import SURE
from tiltmeter.plot.marks import series_layers
from tiltmeter.plot.offline_charts import Layers
from tiltmeter.plot.series import Series
from tiltmeter.plot.theme import DASHES, HEIGHT, INK, LETTER, PALETTE, GroupStyle, axis, frame
from tiltmeter.plot.time_axis import log_scale, time_axis, time_domain
from tiltmeter.record.trajectory import Clock


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
    ['line', 'point']

    `null` is the null value, drawn in black: a number, or a curve over `along` (averaged over all other dimensions).
    """
    extra = [str(d) for d in curve.dims if d not in (along, dim, "seed")]
    if extra or dim not in curve.dims or along not in curve.dims:
        raise ValueError(
            f"`curve` should have the dimensions {along!r} and {dim!r}, and `seed` at most. Found {curve.dims}."
        )
    places = curve.coords[along].values.astype(float)
    series = []
    for i, label in enumerate(curve.coords[dim].values.tolist()):
        values = curve.sel({dim: label}).transpose(along, ...)
        middle, margin = values.values, None
        if "seed" in values.dims:
            mean, error = over_seeds(values)
            middle, margin = mean.values, SURE * error.values if values.sizes["seed"] > 1 else None
        low, high = (None, None) if margin is None else (middle - margin, middle + margin)
        looks = GroupStyle(PALETTE[i % len(PALETTE)], DASHES[i % len(DASHES)], "circle")
        series.append(Series(str(label), "line", looks, places, middle, low, high))
    if null is not None:
        level = xr.zeros_like(curve) + null
        flat = level.mean([d for d in level.dims if d != along]).values
        series.append(Series("null", "line", GroupStyle(INK, [1, 3], "circle"), places, flat, None, None))
    domain = time_domain(places)
    x = time_axis(clock, domain)
    if along != "time":
        ticks = axis(along, values=places.tolist())
        x = alt.X("time:Q", scale=log_scale(domain), axis=ticks)
    words = wrap(y_title or str(curve.attrs.get("long_name", curve.name)), int(HEIGHT / (LETTER * 13)))
    return Layers(layer=series_layers(series, x, words, dim)).properties(**frame(title))
