"""Order parameters: the overlaps M, R and Q of a student, a panel for each."""

from __future__ import annotations

from textwrap import wrap

import altair as alt
import numpy as np
import xarray as xr

from tiltmeter.plot.curves import same_clock
from tiltmeter.plot.marks import series_layers, series_of
from tiltmeter.plot.offline_charts import Layers, Panels
from tiltmeter.plot.theme import (
    WIDTH,
    heading,
)
from tiltmeter.plot.time_axis import time_axis, time_domain
from tiltmeter.plot.timescale_rules import timescale_layers
from tiltmeter.record.trajectory import Trajectory

ORDER_PARAMETERS = ("M", "R", "Q", "label_alignment")
HEIGHT = 130


def order_parameters(
    trajectory: Trajectory, timescales: xr.Dataset | None = None, title: str | None = None
) -> alt.VConcatChart:
    """M (overlap with each group's mean), R (with its teacher), Q (squared length) and alignment, as far as recorded.

    >>> from tiltmeter import predict, timescales
    >>> from tiltmeter.theory import cases
    >>> problem, sgd, times = cases.three_phases()
    >>> chart = order_parameters(predict(problem, sgd, times, curves=("M", "R", "Q")), timescales(problem, sgd))
    >>> len(chart.to_dict()["vconcat"])
    3

    Of a trained network these are averages of its scores over a group: M = E[s], R = E[s y], Q = E[s^2], and the
    alignment R / sqrt(Q E[y^2]). They show what a gap hides: missing alignment (R) and overshoot (Q).

    Time scales: τ_M along the means, τ_R across them, τ_Q for the length.

    Args:
        trajectory: Run to look at: theory, simulation, forecast or training.
        timescales: Marks when each converges, from `tm.timescales`; None: no marks.
        title: Text above the picture; None: what it shows.
    """
    if not isinstance(trajectory, Trajectory):
        raise TypeError(f"`order_parameters` draws a trajectory. Found {type(trajectory).__name__}.")
    names = [name for name in ORDER_PARAMETERS if name in trajectory]
    if not names:
        raise KeyError(f"`order_parameters` draws M, R and Q. This trajectory has: {', '.join(trajectory) or 'none'}.")
    if timescales is not None:
        same_clock("timescales", "t", trajectory.clock)
    domain = time_domain(np.concatenate([trajectory[name].coords["time"].values for name in names]))
    panels = []
    for name in names:
        series = series_of((trajectory,), name, None, None)
        x = time_axis(trajectory.clock, domain, labels=name == names[-1])
        rules: list[alt.Chart] = []
        if timescales is not None:
            rules, _ = timescale_layers(timescales, domain, WIDTH, HEIGHT, labels=name == names[0])
        shared = "group" in trajectory[name].dims
        meaning = str(trajectory[name].attrs.get("long_name", ""))
        drawn = series_layers(series, x, [name, *wrap(meaning, 20)], "group" if shared else None, HEIGHT)
        panels.append(Layers(layer=[*rules, *drawn]).properties(width=WIDTH, height=HEIGHT))
    return Panels(
        vconcat=panels, spacing=12, title=heading(title or "Overlaps of the student with each group over time")
    )
