"""Double descent per group: each group's loss against the size of the training set, at the end and at its best time."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from tiltmeter.analysis.pairs import groups_of, leader_sign
from tiltmeter.names import CURVES
from tiltmeter.plot.grid_axis import is_log_spaced
from tiltmeter.plot.offline_charts import Layers
from tiltmeter.plot.theme import HEIGHT, WIDTH, axis, frame, group_name, legend, rows, short, style_of
from tiltmeter.plot.time_axis import log_ticks, tick_labels
from tiltmeter.record.trajectory import Trajectory

END, BEST = "at the last time", "at its best time"


def double_descent(trajectory: Trajectory, curve: str = "loss", title: str | None = None) -> alt.LayerChart:
    """Solid lines: every group at the last time; dashed: at the time that is best for it. Both axes may be logarithmic.

    >>> from tiltmeter import Fixed, Flow, predict, teacher_mixture
    >>> problem = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> sizes = Fixed(("samples", np.geomspace(0.4, 4.0, 9)))
    >>> few = predict(problem, Flow(lr=1.0), np.geomspace(0.1, 300.0, 60), data=sizes, curves=("loss",))
    >>> double_descent(few).to_dict()["layer"][0]["mark"]["type"]
    'line'

    `trajectory` comes from `predict` over one grid dimension, usually `samples`. If there are about as many examples as
    dimensions, groups that are trained to the end have a peak; groups that are stopped in time do not.

    The last time is not the end of training unless the times reach that far.
    """
    if not isinstance(trajectory, Trajectory):
        raise TypeError(f"`plot.double_descent` draws a trajectory of `predict`. Found {type(trajectory).__name__}.")
    values = trajectory[curve]
    groups = groups_of(values)
    over = [str(dim) for dim in values.dims if dim not in ("time", "group")]
    if len(over) != 1:
        raise ValueError(
            f"`plot.double_descent` draws over exactly one grid dimension. Found {', '.join(over) or 'none'}: pass "
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
    return Layers(layer=[line]).properties(**frame(title, WIDTH, HEIGHT))


def _axis(values: np.ndarray, title: str, log: bool | None = None) -> dict[str, Any]:
    low, high = float(np.min(values)), float(np.max(values))
    if log if log is not None else is_log_spaced(np.sort(values)):
        ticks = log_ticks(low, high)
        scale = alt.Scale(type="log", domain=[low, high], nice=False)
        return {"scale": scale, "axis": axis(title, values=ticks, labelExpr=tick_labels(ticks))}
    return {"scale": alt.Scale(domain=[low, high], nice=False, zero=False), "axis": axis(title)}
