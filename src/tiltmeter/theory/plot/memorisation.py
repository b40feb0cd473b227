"""Fresh examples against a fixed set: both trainings, with rules where the leader changes."""

from __future__ import annotations

import altair as alt
import numpy as np

from tiltmeter.plot.curves import curves
from tiltmeter.plot.theme import HEIGHT as FULL_HEIGHT
from tiltmeter.plot.theme import (
    INK,
    rows,
)
from tiltmeter.plot.time_axis import log_scale, time_domain
from tiltmeter.theory.memorisation import Memorisation

#: Dashes of the rules: crossings with fresh examples, and on the fixed set.
RULES = {"fresh examples": [2, 3], "fixed set": [1, 0]}


def memorisation(found: Memorisation, title: str | None = None) -> alt.LayerChart:
    """Curves of both trainings over log time; vertical rules at the crossings, dotted with fresh examples.

    >>> import numpy as np
    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> found = tm.theory.memorisation(problem, tm.Flow(lr=1.0), np.geomspace(0.01, 100.0, 50), tm.Fixed(samples=2.0))
    >>> [layer["mark"]["type"] for layer in memorisation(found).to_dict()["layer"]][:2]
    ['rule', 'rule']

    A rule is where the leader changes, not where the gap is largest.

    Args:
        found: Result of `tm.theory.memorisation`.
        title: Text above the picture; None: what it shows.
    """
    if not isinstance(found, Memorisation):
        raise TypeError(f"`plot.memorisation` draws the result of `memorisation`. Found {type(found).__name__}.")
    chart = curves(
        *found.trajectories,
        curve=found.curve,
        labels=tuple(RULES),
        title=title or "Fresh examples against a fixed set: rules where the leader changes",
    )
    times = np.concatenate([one[found.curve].coords["time"].values for one in found.trajectories])
    x = alt.X("time:Q", scale=log_scale(time_domain(times)))
    marks = []
    for (_, dash), led in zip(RULES.items(), (found.online, found.fixed), strict=True):
        if led.changes:
            data = alt.Chart(rows([{"time": one.time} for one in led.changes])).encode(x)
            rule = data.mark_rule(color=INK, strokeWidth=1, strokeDash=dash, opacity=0.6)
            marks.append(rule.encode(y=alt.value(0), y2=alt.value(FULL_HEIGHT)))
    return alt.LayerChart(layer=[*marks, *chart.layer]).properties(**_frame_of(chart))


def _frame_of(chart: alt.LayerChart) -> dict[str, object]:
    return {name: getattr(chart, name) for name in ("width", "height", "title") if not _undefined(getattr(chart, name))}


def _undefined(value: object) -> bool:
    return value is alt.Undefined
