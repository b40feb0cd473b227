"""Shares of variance: what explains each of several numbers, as a map of responses and parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from tiltmeter.analysis.variance.shares import Shares
from tiltmeter.plot.offline_charts import Layers
from tiltmeter.plot.theme import INK, axis, frame, legend, rows, short

SIZE = 54


def variance_shares(found: Sequence[Shares], parts: Sequence[str] | None = None, title: str | None = None) -> Any:
    """A map: one row for each response, one column for each part, the darker the larger its share.

    >>> import numpy as np, xarray as xr
    >>> from tiltmeter import shares
    >>> grid = xr.DataArray(np.random.default_rng(0).normal(size=(2, 3, 5)), dims=("width", "lr", "seed"), name="gap")
    >>> picture = variance_shares([shares(grid, draws=20, permutations=0)])
    >>> picture.to_dict()["layer"][0]["mark"]["type"]
    'rect'

    Every square shows its share in per cent and its interval below. `parts` chooses the columns; by default these are
    the factors, the pairs that reach a twentieth somewhere, the rest and chance.
    """
    if not found:
        raise ValueError("`variance_shares` needs at least one result of `shares`. Found none.")
    columns = list(parts) if parts is not None else _columns(found)
    squares: list[dict[str, Any]] = []
    for one in found:
        held = {row.term: row for row in one.rows}
        for part in columns:
            if part in held:
                row = held[part]
                squares.append(
                    {
                        "response": one.response,
                        "part": part,
                        "share": short(row.share),
                        "text": f"{row.share:.0%}",
                        "interval": f"{row.low:.0%}-{row.high:.0%}",
                    }
                )
    x = alt.X("part:N", sort=columns, axis=axis(None, orient="top", labelAngle=-30, labelLimit=200))
    y = alt.Y("response:N", sort=[one.response for one in found], axis=axis(None, labelLimit=240))
    scale = alt.Scale(domain=[0, 1], scheme="blues")
    colour = alt.Color("share:Q", scale=scale, legend=legend("share of variance", format="%"))
    base = alt.Chart(rows(squares)).encode(x, y)
    ink = alt.condition(alt.datum.share > 0.55, alt.value("white"), alt.value(INK))
    layers = [
        base.mark_rect(stroke="white").encode(colour),
        base.mark_text(fontSize=13, dy=-6).encode(alt.Text("text:N"), color=ink),
        base.mark_text(fontSize=9, dy=9).encode(alt.Text("interval:N"), color=ink),
    ]
    return Layers(layer=layers).properties(**frame(title, 1.35 * SIZE * len(columns), SIZE * len(found)))


def _columns(found: Sequence[Shares]) -> list[str]:
    """Factors first, then pairs worth showing, then the rest and chance."""
    largest: dict[str, float] = {}
    for one in found:
        for row in one.rows:
            largest[row.term] = max(largest.get(row.term, 0.0), row.share)
    ends = ("rest", "seed")
    factors = [term for term in largest if " x " not in term and term not in ends]
    pairs = [term for term, share in largest.items() if " x " in term and share >= 0.05]
    return [*factors, *pairs, *(term for term in ends if term in largest)]
