"""The loss plane: mean loss against worst-group loss, one line per run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np

from tiltmeter.analysis.scorecard.group_values import on_common_stretch
from tiltmeter.analysis.scorecard.training_facts import training_shares
from tiltmeter.plot.offline_charts import Layers
from tiltmeter.plot.run_channels import run_channels
from tiltmeter.plot.theme import FAINT, airy, axis, frame, rows, short
from tiltmeter.plot.time_axis import thinned
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.visible_text import visible

SIDE = 360
#: Marks along every line, at equal steps.
MARKS = 11


def loss_plane(
    runs: Mapping[str, Trajectory],
    curve: str = "loss",
    shares: Mapping[Any, float] | None = None,
    title: str | None = None,
) -> alt.LayerChart:
    """Where every run goes in the plane of mean (falling to the right) and worst group; marks stand at equal steps.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> laws = {"plain": (), "balanced": (tm.interventions.Balanced(by="draws"),)}
    >>> times = [0.0, 1.0, 5.0, 20.0, 60.0]
    >>> runs = {name: tm.predict(problem, tm.SGD(lr=0.2, interventions=law), times) for name, law in laws.items()}
    >>> loss_plane(runs).to_dict()["layer"][1]["mark"]["type"]
    'line'

    On the dashed diagonal all groups are alike. A run that is only faster moves further along the same line; one that
    changes the path is another line; levelling down ends high on the diagonal. Seeds are averaged.
    """
    if not runs:
        raise ValueError("`loss_plane` needs at least one run by name. Found none.")
    found = on_common_stretch(runs, curve)
    first = next(iter(found))
    weights, _ = training_shares(runs[first], found[first].groups, shares)
    lines: list[dict[str, Any]] = []
    marks: list[dict[str, Any]] = []
    for name, one in found.items():
        label = visible(name)
        mean, worst = (one.values @ weights).mean(axis=0), one.values.max(axis=2).mean(axis=0)
        every = np.union1d([0], thinned(one.times))
        lines += [{"x": short(mean[i]), "y": short(worst[i]), "time": float(one.times[i]), "run": label} for i in every]
        for time in np.linspace(one.times[0], one.times[-1], MARKS):
            across, up = (float(np.interp(time, one.times, values)) for values in (mean, worst))
            marks.append({"x": short(across), "y": short(up), "time": float(time), "run": label})
    known = [row for row in lines if row["x"] is not None and row["y"] is not None]
    if not known:
        raise ValueError("There is nothing to draw: no look has a value.")
    spans = [airy(min(row[key] for row in known), max(row[key] for row in known)) for key in ("x", "y")]
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=list(spans[0]), nice=False, reverse=True),
        axis=axis(f"mean {curve}"),
    )
    y = alt.Y("y:Q", scale=alt.Scale(domain=list(spans[1]), nice=False), axis=axis(f"{curve} of the worst group"))
    channels = run_channels(list(found))
    low, high = max(spans[0][0], spans[1][0]), min(spans[0][1], spans[1][1])
    diagonal = [{"x": short(low), "y": short(low)}, {"x": short(high), "y": short(high)}]
    layers = [
        alt.Chart(rows(diagonal)).mark_line(color=FAINT, strokeDash=[4, 4], strokeWidth=1).encode(x, y),
        alt.Chart(rows(lines)).mark_line(strokeWidth=2).encode(x, y, channels.colour, order="time:Q"),
        alt.Chart(rows(marks))
        .mark_point(size=40, strokeWidth=1.4, fill="white", opacity=1.0)
        .encode(x, y, channels.colour, channels.shape),
    ]
    return Layers(layer=layers).properties(**frame(title, SIDE * 1.3, SIDE))
