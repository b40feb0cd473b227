"""Horizon rule: a vertical line where a forecast stops being trustworthy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from tiltmeter.forecast.bands.band_horizon import horizon
from tiltmeter.forecast.bands.forecast_band import calibrated_band
from tiltmeter.forecast.horizon import noted_step
from tiltmeter.plot.theme import FAINT, INK, rows
from tiltmeter.plot.time_axis import Domain, log_scale, pixels
from tiltmeter.record.trajectory import Trajectory


def horizon_step(trajectory: Trajectory, curve: str = "loss") -> float | None:
    """The last step up to which a forecast should be trusted, or None if it has no such limit.

    With a calibrated band this is where the band becomes wider than the tolerance of `horizon`; else what the tests of
    the kernel say.
    """
    if calibrated_band(trajectory, curve) is not None:
        return horizon(trajectory, curve=curve).level
    return noted_step(trajectory)


def horizon_layers(
    trajectories: Sequence[Trajectory], domain: Domain, height: float, curve: str = "loss"
) -> list[alt.Chart]:
    """A vertical line at the earliest horizon inside the axis, with a label."""
    every = [horizon_step(one, curve) for one in trajectories]
    steps = [step for step in every if step is not None and domain[0] < step < domain[1]]
    if not steps:
        return []
    base = alt.Chart(rows([{"time": min(steps)}])).encode(alt.X("time:Q", scale=log_scale(domain)))
    rule = base.mark_rule(color=FAINT, strokeWidth=1.5).encode(y=alt.value(0), y2=alt.value(height))
    late = pixels(min(steps), domain, 1.0) > 0.5
    side: dict[str, Any] = {"align": "right", "dx": -4} if late else {"align": "left", "dx": 4}
    word = base.mark_text(baseline="top", dy=4, **side, fontSize=11, fontStyle="italic", color=INK)
    return [rule, word.encode(y=alt.value(0), text=alt.value("horizon of the forecast"))]
