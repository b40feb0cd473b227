"""Bias at the end of training against the amplification of the shortcut, one line per kind of model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import xarray as xr

from tiltmeter.analysis.over_seeds import over_seeds
from tiltmeter.analysis.pairs import SURE
from tiltmeter.plot.offline_charts import Layers
from tiltmeter.plot.theme import DASHES, FAINT, PALETTE, airy, axis, frame, legend, rows, short


def reliance(bias: Mapping[str, xr.DataArray], title: str | None = None) -> alt.LayerChart:
    """Means over seeds with error bars of two standard errors, over the dimension `ratio`, at the last observation.

    >>> made = xr.DataArray([[[0.0, 0.1]]], dims=("time", "seed", "ratio"), coords={"time": [0], "ratio": [1.0, 10.0]})
    >>> len(reliance({"linear": made}).layer)
    3
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
    ).properties(**frame(title))
