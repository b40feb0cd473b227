"""Promise rule: a vertical line where the promise of a forecast begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from tiltmeter.plot.theme import FAINT, INK, rows
from tiltmeter.plot.time_axis import Domain, log_scale, pixels
from tiltmeter.record.trajectory import Trajectory


def promised_since(trajectory: Trajectory) -> float | None:
    """The first step for which a forecast promises something; infinity if it promises nothing; None for other runs."""
    if trajectory.origin.source != "forecast" or "promise" not in trajectory.origin.settings:
        return None
    promise: Any = trajectory.origin.settings["promise"]
    return float("inf") if promise is None else float(promise["from"])


def promise_layers(trajectories: Sequence[Trajectory], domain: Domain, height: float) -> list[alt.Chart]:
    """A vertical line at the latest beginning of a promise inside the axis, with a label."""
    every = [promised_since(one) for one in trajectories]
    steps = [step for step in every if step is not None and domain[0] < step < domain[1]]
    if not steps:
        return []
    base = alt.Chart(rows([{"time": max(steps)}])).encode(alt.X("time:Q", scale=log_scale(domain)))
    rule = base.mark_rule(color=FAINT, strokeWidth=1.5).encode(y=alt.value(0), y2=alt.value(height))
    late = pixels(max(steps), domain, 1.0) > 0.5
    side: dict[str, Any] = {"align": "right", "dx": -4} if late else {"align": "left", "dx": 4}
    word = base.mark_text(baseline="top", dy=4, **side, fontSize=11, fontStyle="italic", color=INK)
    return [rule, word.encode(y=alt.value(0), text=alt.value("promised from here on"))]
