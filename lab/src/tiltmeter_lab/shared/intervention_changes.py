"""intervention_changes: one number per intervention and task, with bars of two standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

import tiltmeter as tm

LINE, WIDTH = 30, 440


def intervention_changes(marks: Sequence[tuple[str, str, float, float]], title: str) -> alt.LayerChart:
    """Marks (task, intervention, value, standard error): interventions below one another, tasks by colour and shape.

    >>> intervention_changes([("toy", "balanced", -0.1, 0.02)], "change").to_dict()["layer"][1]["mark"]["type"]
    'rule'
    """
    tasks = list(dict.fromkeys(task for task, *_ in marks))
    laws = list(dict.fromkeys(law for _, law, *_ in marks))
    drawn: list[dict[str, Any]] = [
        {
            "run": task,
            "law": law,
            "x": tm.plot.theme.short(x),
            "low": tm.plot.theme.short(x - 2.0 * e),
            "high": tm.plot.theme.short(x + 2.0 * e),
        }
        for task, law, x, e in marks
        if x == x and e == e
    ]
    ends = [value for row in drawn for value in (row["low"], row["high"])]
    scale = alt.Scale(domain=list(tm.plot.theme.airy(min(ends), max(ends))), nice=False)
    y = alt.Y("law:N", sort=laws, axis=tm.plot.theme.axis(None, labelLimit=240, grid=True))
    apart = alt.YOffset("run:N", sort=tasks)
    channels = tm.plot.run_channels(tasks, title="task")
    data = tm.plot.theme.rows(drawn)
    at = alt.X("x:Q", scale=scale, axis=tm.plot.theme.axis(title))
    low = alt.X("low:Q", scale=scale, axis=tm.plot.theme.axis(title))
    layers = [
        alt.Chart(tm.plot.theme.rows([{"x": 0.0}])).mark_rule(color=tm.plot.theme.INK, strokeWidth=0.8).encode(at),
        alt.Chart(data).mark_rule(strokeWidth=1.4).encode(low, y, apart, channels.colour, alt.X2("high:Q")),
        alt.Chart(data)
        .mark_point(size=34, strokeWidth=1.6, fill="white", opacity=1.0)
        .encode(at, y, apart, channels.colour, channels.shape),
    ]
    return alt.LayerChart(layer=layers).properties(**tm.plot.theme.frame(None, WIDTH, LINE * len(laws)))
