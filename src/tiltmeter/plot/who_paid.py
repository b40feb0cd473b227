"""Who paid: every group before and after an intervention."""

from __future__ import annotations

from typing import Any

import altair as alt

from tiltmeter.analysis.scorecard.scorecard import Scorecard
from tiltmeter.plot.offline_charts import Layers
from tiltmeter.plot.theme import FAINT, PALETTE, airy, axis, frame, group_name, legend, rows, short
from tiltmeter.visible_text import visible

#: Height of one line of the picture.
LINE = 26
WIDTH = 460


def who_paid(card: Scorecard, title: str | None = None) -> alt.LayerChart:
    """For every run and group, the value in the baseline (open mark) and in the run (full mark) at the selected look.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> laws = {"plain": (), "balanced": (tm.interventions.Balanced(by="draws"),)}
    >>> runs = {name: tm.predict(problem, tm.SGD(lr=0.2, interventions=law), [0.0, 60.0]) for name, law in laws.items()}
    >>> who_paid(tm.scorecard(runs)).to_dict()["layer"][0]["mark"]["type"]
    'rule'

    Lines to the right are losses for that group. A long line is not a certain one: errors stand in the scorecard.
    """
    pieces: list[dict[str, Any]] = []
    before = card.baseline.at_selected
    for row in card.rows[1:]:
        for group, old, new in zip(card.groups, before, row.at_selected, strict=True):
            kind = "worse off" if new.value > old.value else "better off"
            pieces.append(
                {
                    "line": f"{visible(row.name)}: {group_name(group)}",
                    "old": short(old.value),
                    "new": short(new.value),
                    "kind": kind,
                }
            )
    values = [v for piece in pieces for v in (piece["old"], piece["new"]) if v is not None]
    if not values:
        raise ValueError("There is nothing to draw: no run has a value at the selected look.")
    order = [piece["line"] for piece in pieces]
    scale = alt.Scale(domain=list(airy(min(values), max(values))), nice=False)
    y = alt.Y("line:N", sort=order, axis=axis(None, labelLimit=320, grid=False))
    kinds = ["worse off", "better off"]
    colour = alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=[PALETTE[4], PALETTE[0]]), legend=legend(None))
    written = axis(f"{card.curve}: open mark {visible(card.baseline.name)}, full mark the run")
    at_old, at_new = (alt.X(f"{name}:Q", scale=scale, axis=written) for name in ("old", "new"))
    data = rows(pieces)
    layers = [
        alt.Chart(data).mark_rule(strokeWidth=2).encode(at_old, y, colour, alt.X2("new:Q")),
        alt.Chart(data).mark_point(size=60, fill="white", opacity=1.0, stroke=FAINT).encode(at_old, y),
        alt.Chart(data).mark_point(size=60, filled=True, opacity=1.0).encode(at_new, y, colour),
    ]
    return Layers(layer=layers).properties(**frame(title, WIDTH, LINE * len(order)))
