"""Pulls: worst and best group of every run over log time, and beneath them what each group counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np

from tiltmeter.analysis.scorecard.group_values import GroupValues, on_common_stretch
from tiltmeter.plot.offline_charts import Layers, Panels
from tiltmeter.plot.run_channels import run_channels
from tiltmeter.plot.theme import WIDTH, axis, frame, group_name, rows, short
from tiltmeter.plot.time_axis import thinned, time_axis, time_domain
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.visible_text import visible

UPPER, LOWER = 240, 150


def pulls(runs: Mapping[str, Trajectory], curve: str = "loss", title: str | None = None) -> alt.VConcatChart:
    """The worst group (full line) and the best (thin line) of every run, and the pull on its worst-off group.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> laws = {"plain": (), "DRO": (tm.interventions.GroupDRO(rate=5.0, by="draws"),)}
    >>> times = [0.0, 1.0, 5.0, 20.0, 60.0]
    >>> runs = {name: tm.predict(problem, tm.SGD(lr=0.2, interventions=law), times) for name, law in laws.items()}
    >>> len(pulls(runs).to_dict()["vconcat"])
    2

    The lower panel has a line for every run that recorded its pulls: the pull on the group that is worst off in the
    first run at its end. Without any, there is no lower panel. Seeds are averaged.
    """
    if not runs:
        raise ValueError("`pulls` needs at least one run by name. Found none.")
    found = on_common_stretch(runs, curve)
    first = next(iter(found.values()))
    group = first.groups[int(np.nanargmax(first.values[:, -1].mean(axis=0)))]
    domain = time_domain(np.concatenate([one.times for one in found.values()]))
    clock = next(iter(runs.values())).clock
    channels = run_channels(list(found), lines=True)

    def panel(which: str) -> list[dict[str, Any]]:
        return [row for name, one in found.items() for row in _line(name, one, which)]

    y = alt.Y("value:Q", scale=alt.Scale(zero=False), axis=axis([curve, "worst (thick), best (thin)"]))
    pulled = [row for name, run in runs.items() if "pull" in run for row in _pull(name, run, group, domain[1])]
    x = time_axis(clock, domain, labels=not pulled)
    upper = Layers(
        layer=[
            alt.Chart(rows(panel("worst"))).mark_line(strokeWidth=2.4).encode(x, y, channels.colour, channels.dash),
            alt.Chart(rows(panel("best"))).mark_line(strokeWidth=1).encode(x, y, channels.colour, channels.dash),
        ]
    ).properties(width=WIDTH, height=UPPER)
    lower_y = alt.Y("value:Q", axis=axis(["pull", f"on {group_name(group)}"]))
    below = alt.Chart(rows(pulled)).mark_line(strokeWidth=2)
    lower = below.encode(time_axis(clock, domain), lower_y, channels.colour, channels.dash)
    panels = [upper, lower.properties(width=WIDTH, height=LOWER)] if pulled else [upper]
    both = Panels(vconcat=panels, spacing=8)
    return both if title is None else both.properties(title=frame(title)["title"])


def _line(name: str, run: GroupValues, which: str) -> list[dict[str, Any]]:
    per_seed = run.values.max(axis=2) if which == "worst" else run.values.min(axis=2)
    mean = per_seed.mean(axis=0)
    return [
        {"time": float(run.times[i]), "value": short(mean[i]), "run": visible(name)}
        for i in thinned(run.times).tolist()
    ]


def _pull(name: str, run: Trajectory, group: Any, end: float) -> list[dict[str, Any]]:
    curve = run["pull"]
    curve = curve.mean("seed") if "seed" in curve.dims else curve
    values = curve.isel(group=curve.coords["group"].values.tolist().index(group)).transpose("time").values
    times = curve.coords["time"].values.astype(float)
    return [
        {"time": float(times[i]), "value": short(values[i]), "run": visible(name)}
        for i in thinned(times).tolist()
        if times[i] <= end
    ]
