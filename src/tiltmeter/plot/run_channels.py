"""Run channels: how several runs in one picture are told apart, by colour and by shape or dash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from tiltmeter.plot.theme import DASHES, LINE_SYMBOL, PALETTE, SHAPES, legend
from tiltmeter.visible_text import visible


@dataclass(frozen=True, eq=False)
class RunChannels:
    """The channels of pictures with the field "run"."""

    colour: alt.Color
    shape: alt.Shape
    dash: alt.StrokeDash


def run_channels(names: Sequence[str], lines: bool = False, title: str | None = "run") -> RunChannels:
    """Colours, shapes and dashes for runs in this order; with `lines` the legend shows strokes instead of marks.

    >>> run_channels(["plain", "balanced"]).colour.to_dict()["scale"]["domain"]
    ['plain', 'balanced']
    """
    domain = [visible(name) for name in names]
    settings = {"symbolType": LINE_SYMBOL, "symbolSize": 260} if lines else {}
    shared: dict[str, Any] = {"field": "run", "type": "nominal", "sort": None, "legend": legend(title, **settings)}

    def ranged(values: Sequence[Any]) -> alt.Scale:
        return alt.Scale(domain=domain, range=[values[i % len(values)] for i in range(len(domain))])

    return RunChannels(
        alt.Color(scale=ranged(PALETTE), **shared),
        alt.Shape(scale=ranged(SHAPES), **shared),
        alt.StrokeDash(scale=ranged(DASHES), **shared),
    )
