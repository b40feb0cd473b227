"""Layers, Panels: charts that notebooks draw without any network, also after they are exported.

Altair by default hands a notebook a specification and lets its scripts come from a CDN. These charts hand it the drawn
picture instead (SVG). Whoever has chosen a renderer (`altair.renderers.enable("jupyter")`) gets what they chose.
"""

from __future__ import annotations

from io import StringIO
from typing import Any

import altair as alt


class Layers(alt.LayerChart):
    """Layers on one frame.

    >>> import pandas as pd
    >>> points = pd.DataFrame({"x": [1, 2]})
    >>> chart = Layers(layer=[alt.Chart(points).mark_point().encode(x="x:Q")])
    >>> list(chart._repr_mimebundle_()), "<svg" in chart._repr_mimebundle_()["image/svg+xml"]
    (['image/svg+xml'], True)
    """

    def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> Any:
        return drawn(self) if renderer_is_default() else super()._repr_mimebundle_(*args, **kwargs)


class Panels(alt.VConcatChart):
    """Panels below one another."""

    def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> Any:
        return drawn(self) if renderer_is_default() else super()._repr_mimebundle_(*args, **kwargs)


def renderer_is_default() -> bool:
    """Whether nobody has chosen how notebooks show charts."""
    return alt.renderers.active in ("", "default")


def drawn(chart: alt.TopLevelMixin) -> dict[str, str]:
    """The picture of a chart as a notebook takes it."""
    target = StringIO()
    chart.save(target, format="svg")
    return {"image/svg+xml": target.getvalue()}
