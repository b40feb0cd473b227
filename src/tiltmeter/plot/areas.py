"""Areas: the worst group against the gap, both averaged over training, one colour per run and one dot per seed."""

from __future__ import annotations

from typing import Any

import altair as alt

from tiltmeter.analysis.scorecard.scorecard import Scorecard
from tiltmeter.plot.offline_charts import Layers
from tiltmeter.plot.run_channels import run_channels
from tiltmeter.plot.theme import airy, axis, frame, rows, short
from tiltmeter.visible_text import visible

SIDE = 320


def areas(card: Scorecard, title: str | None = None) -> alt.LayerChart:
    """The gap over training against the worst group over training: low and left is better, left alone is not.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> laws = {"plain": (), "balanced": (tm.interventions.Balanced(by="draws"),)}
    >>> runs = {name: tm.predict(problem, tm.SGD(lr=0.2, interventions=law), [0.0, 60.0]) for name, law in laws.items()}
    >>> len(areas(tm.scorecard(runs)).to_dict()["layer"])
    2

    Small marks are seeds, large ones their mean. A run that lies left of the baseline and above it levels down.
    """
    dots: list[dict[str, Any]] = []
    means: list[dict[str, Any]] = []
    for row in card.rows:
        name = visible(row.name)
        dots += [{"x": short(gap), "y": short(worst), "run": name} for gap, worst in row.areas_by_seed]
        means.append({"x": short(row.gap_area.value), "y": short(row.worst_area.value), "run": name})
    known = [one for one in dots if one["x"] is not None and one["y"] is not None]
    if not known:
        raise ValueError("There is nothing to draw: no run has areas.")
    spans = [airy(min(one[key] for one in known), max(one[key] for one in known)) for key in ("x", "y")]
    over = f"{card.curve}, mean over training"
    x = alt.X("x:Q", scale=alt.Scale(domain=list(spans[0]), nice=False), axis=axis(f"gap in {over}"))
    y = alt.Y("y:Q", scale=alt.Scale(domain=list(spans[1]), nice=False), axis=axis(f"worst group's {over}"))
    channels = run_channels([row.name for row in card.rows])
    layers = [
        alt.Chart(rows(dots)).mark_point(size=18, opacity=0.6).encode(x, y, channels.colour, channels.shape),
        alt.Chart(rows(means))
        .mark_point(size=110, strokeWidth=2.2, opacity=1.0)
        .encode(x, y, channels.colour, channels.shape),
    ]
    return Layers(layer=layers).properties(**frame(title, SIDE * 1.3, SIDE))
