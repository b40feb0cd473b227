"""Feature sweep: test and training curves of every group against the number of features or the width."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
import xarray as xr

from tiltmeter.names import CURVES
from tiltmeter.plot.offline_charts import Layers
from tiltmeter.plot.theme import INK, airy, axis, frame, group_name, heading, legend, rows, short, style_of

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

    >>> from tiltmeter import teacher_mixture, theory
    >>> problem = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> found = theory.random_features(problem, [0.5, 1.0, 2.0, 4.0], samples=2.0)
    >>> [layer["mark"]["type"] for layer in feature_sweep(found, samples=2.0).to_dict()["layer"]]
    ['line', 'line', 'rule']
    """
    if not isinstance(found, xr.Dataset):
        raise TypeError(
            f"`feature_sweep` draws a Dataset, as of `theory.random_features`. Found {type(found).__name__}."
        )
    for name in curves:
        if name not in found:
            raise KeyError(f"No curve {name!r}. There are: {', '.join(map(str, found))}.")
        if set(found[name].dims) != {x, "group"}:
            raise ValueError(f"`{name}` should have the dimensions {x!r} and 'group'. Found {found[name].dims}.")
    if not curves:
        raise ValueError("`curves` should name at least one curve. Found none.")
    groups = found.coords["group"].values.tolist()
    looks, names = [style_of(group, groups) for group in groups], [group_name(group) for group in groups]
    places = np.asarray(found.coords[x].values, dtype=float)
    values = np.concatenate([found[name].values.ravel() for name in curves])
    low, high = airy(float(np.nanmin(values)), float(np.nanmax(values)))
    across = alt.X(
        "x:Q", scale=alt.Scale(type="log", domain=[float(places.min()), float(places.max())], nice=False),
        axis=axis("features per dimension" if x == "features" else x, format="~g"),
    )  # fmt: skip
    meaning = CURVES[curves[0]].meaning if curves[0] in CURVES else curves[0]
    up = alt.Y("y:Q", scale=alt.Scale(domain=[low, high], nice=False, zero=False), axis=axis(meaning))
    both = len({name.startswith("training") for name in curves}) > 1
    key = "group (thin: training)" if both else "group"
    colour = alt.Color(
        "group:N",
        sort=None,
        legend=legend(key),
        scale=alt.Scale(domain=names, range=[look.colour for look in looks]),
    )
    dash = alt.StrokeDash(
        "group:N", sort=None, legend=legend(key), scale=alt.Scale(domain=names, range=[look.dash for look in looks])
    )
    layers: list[alt.Chart] = []
    for name in curves:
        table = [
            {"x": short(place), "y": short(float(found[name].sel({x: place, "group": group}))), "group": text}
            for group, text in zip(groups, names, strict=True)
            for place in sorted(places.tolist())
        ]
        width = THIN if name.startswith("training") else WIDE
        layers.append(alt.Chart(rows(table)).mark_line(strokeWidth=width, clip=True).encode(across, up, colour, dash))
    if samples is not None:
        mark = alt.Chart(rows([{"x": float(samples)}])).mark_rule(color=INK, strokeDash=[2, 3], strokeWidth=1)
        layers.append(mark.encode(across))
    chart = Layers(layer=layers).properties(**frame(None))
    return chart if title is None else chart.properties(title=heading(title))
