"""A function of an angle around the circle: the pull on neurons by direction."""

from __future__ import annotations

import altair as alt
import numpy as np
import xarray as xr

from tiltmeter.plot.offline_charts import Layers
from tiltmeter.plot.theme import FAINT, PALETTE, airy, axis, frame, rows, short


def angles(values: xr.DataArray, title: str | None = None) -> alt.LayerChart:
    """Values over `angle` in degrees as a line, averaged over seeds; dots mark the extremes.

    >>> wave = xr.DataArray(np.cos(np.radians(np.arange(0, 360, 5))), coords={"angle": np.arange(0, 360, 5)})
    >>> len(angles(wave).layer)
    3
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
    ).properties(**frame(title))
