"""law_changes: one number per law and task, with bars of two standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from tiltmeter.plot.offline_charts import Layers
from tiltmeter.plot.run_channels import run_channels
from tiltmeter.plot.theme import INK, airy, axis, frame, rows, short

LINE, WIDTH = 30, 440


def law_changes(marks: Sequence[tuple[str, str, float, float]], title: str) -> alt.LayerChart:
    """Marks (task, law, value, standard error): laws below one another, tasks by colour and shape.

    >>> law_changes([("toy", "balanced", -0.1, 0.02)], "change").to_dict()["layer"][1]["mark"]["type"]
    'rule'
    """
    tasks = list(dict.fromkeys(task for task, *_ in marks))
    laws = list(dict.fromkeys(law for _, law, *_ in marks))
    drawn: list[dict[str, Any]] = [
        {"run": task, "law": law, "x": short(x), "low": short(x - 2.0 * e), "high": short(x + 2.0 * e)}
        for task, law, x, e in marks
        if x == x and e == e
    ]
    ends = [value for row in drawn for value in (row["low"], row["high"])]
    scale = alt.Scale(domain=list(airy(min(ends), max(ends))), nice=False)
    y = alt.Y("law:N", sort=laws, axis=axis(None, labelLimit=240, grid=True))
    apart = alt.YOffset("run:N", sort=tasks)
    channels = run_channels(tasks, title="task")
    data = rows(drawn)
    at = alt.X("x:Q", scale=scale, axis=axis(title))
    low = alt.X("low:Q", scale=scale, axis=axis(title))
    layers = [
        alt.Chart(rows([{"x": 0.0}])).mark_rule(color=INK, strokeWidth=0.8).encode(at),
        alt.Chart(data).mark_rule(strokeWidth=1.4).encode(low, y, apart, channels.colour, alt.X2("high:Q")),
        alt.Chart(data)
        .mark_point(size=34, strokeWidth=1.6, fill="white", opacity=1.0)
        .encode(at, y, apart, channels.colour, channels.shape),
    ]
    return Layers(layer=layers).properties(**frame(None, WIDTH, LINE * len(laws)))
