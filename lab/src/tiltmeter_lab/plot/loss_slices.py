"""Loss slices: the loss of every group along a line through the weights, one panel per moment of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np

from tiltmeter.plot.theme import FAINT, LINE_SYMBOL, airy, axis, group_name, heading, legend, rows, short, style_of
from tiltmeter.record.trajectory import Trajectory

#: Width and height of a panel, and how many are drawn if no times are chosen.
PANEL, MOST = {"width": 170, "height": 190}, 4


def loss_slices(trajectory: Trajectory, times: Sequence[float] | None = None, title: str | None = None) -> Any:
    """The curve `loss_slice` that the measure `loss-slice` recorded, at these times; a mark is where training stands.

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> data = tm.GroupedData(torch.eye(2).repeat(30, 1), [0.0, 1.0] * 30, ["a", "b"] * 30)
    >>> watch = tm.Watch(when=tm.record.every(5), measures=(lab.measures.LossSlice(),))
    >>> run = tm.train(torch.nn.Linear(2, 1), data, data, tm.Recipe(lr=0.1, steps=10), watch=watch)
    >>> [panel["title"] for panel in loss_slices(run).to_dict()["hconcat"]]
    ['step 0', 'step 5', 'step 10']

    To the right lies the way that training goes. By default four moments are drawn, evenly spaced in the evaluations,
    each with its own scale. Seeds are averaged. What it does not show: other directions, in which the loss may look
    different.

    Args:
        trajectory: Run that recorded the measure `loss-slice`.
        times: Moments to draw; None: four, evenly spaced in the evaluations.
        title: Text above the picture; None: what it shows.
    """
    if not isinstance(trajectory, Trajectory):
        raise TypeError(f"`plot.loss_slices` draws a trajectory. Found {type(trajectory).__name__}.")
    if "loss_slice" not in trajectory:
        raise ValueError("`plot.loss_slices` needs the curve `loss_slice`: record the measure `loss-slice`.")
    curve = trajectory["loss_slice"]
    curve = curve.mean("seed") if "seed" in curve.dims else curve
    chosen = _chosen(curve["time"].values, times)
    groups = curve["group"].values.tolist()
    names = [group_name(group) for group in groups]
    styles = [style_of(group, groups) for group in groups]
    shown = curve.isel(time=chosen)
    if not np.isfinite(shown.values).any():
        raise ValueError("There is nothing to draw: no evaluation has a value.")
    offsets = curve["offset"].values
    x = alt.X("offset:Q", scale=alt.Scale(domain=[float(offsets[0]), float(offsets[-1])], nice=False),
              axis=axis("offset, over the length of the weights", titleFontSize=11, tickCount=5))  # fmt: skip
    colour = alt.Color("group:N", scale=alt.Scale(domain=names, range=[one.colour for one in styles]),
                       legend=legend("group", symbolType=LINE_SYMBOL))  # fmt: skip
    dash = alt.StrokeDash("group:N", scale=alt.Scale(domain=names, range=[one.dash for one in styles]), legend=None)
    panels: list[Any] = []
    for place in chosen:
        here = curve.isel(time=place)
        finite = here.values[np.isfinite(here.values)]
        span = airy(float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        y = alt.Y("loss:Q", scale=alt.Scale(domain=list(span), nice=False), axis=axis("loss" if not panels else None))
        lines: list[dict[str, Any]] = []
        for group, name in zip(groups, names, strict=True):
            values = here.sel(group=group).transpose("offset").values
            lines += [
                {"offset": float(o), "loss": short(v), "group": name} for o, v in zip(offsets, values, strict=True)
            ]
        base = alt.Chart(rows(lines)).encode(x, y, colour)
        rule = alt.Chart(rows([{"offset": 0.0}])).mark_rule(color=FAINT, strokeDash=[3, 3]).encode(alt.X("offset:Q"))
        moment = f"{trajectory.clock} {float(curve['time'].values[place]):g}"
        panels.append(alt.layer(rule, base.mark_line(strokeWidth=2).encode(dash)).properties(title=moment, **PANEL))
    chart: alt.HConcatChart = alt.hconcat(*panels)
    return chart.properties(title=heading(title or "Loss of each group along a line through the weights"))


def _chosen(known: np.ndarray, times: Sequence[float] | None) -> list[int]:
    """Places of the evaluations to draw: the last one at or before each time."""
    if times is None:
        even = np.linspace(0, len(known) - 1, min(MOST, len(known))).round()
        return sorted({int(place) for place in even})
    found = []
    for time in times:
        if not known[0] <= time <= known[-1]:
            raise ValueError(f"`times` should lie between {known[0]:g} and {known[-1]:g}. Found {time:g}.")
        found.append(int(np.searchsorted(known, time, side="right")) - 1)
    return sorted(set(found))
