"""Theme: colours, dashes, shapes and sizes, so that a group looks the same in every picture, in colour and in
grey."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from tiltmeter.leaders.headline import term
from tiltmeter.names import CURVES
from tiltmeter.shown_text import group_name as group_name
from tiltmeter.shown_text import visible

__all__ = ["DASHES", "INK", "PALETTE", "airy", "axis", "curve_words", "frame", "legend", "rows", "short"]


# Altair's own default draws a chart in a notebook with scripts from the network. A picture that is already drawn needs
# none, there and in the exported notebook. What the user chose stays.
if alt.renderers.active == "default":
    alt.renderers.enable("svg")

#: The colours of Okabe and Ito, distinguishable with every common colour blindness. The first two also differ in grey.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000")
#: Dark and light shade of each colour; those of the first two are four clearly different greys.
SHADES = (
    ("#00507D", "#8CC4E8"),
    ("#B87900", "#FBE3B0"),
    ("#006B4E", "#9ADBC5"),
    ("#9C4A78", "#EBC6DA"),
    ("#963F00", "#F6B98F"),
    ("#2383B9", "#C4E4F7"),
    ("#000000", "#BBBBBB"),
)
#: Dash patterns that differ without colour.
DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [14, 4], [5, 2, 1, 2, 1, 2], [4, 6], [16, 3, 3, 3])
#: Marker shapes that differ without colour.
SHAPES = ("circle", "triangle-up", "square", "diamond", "triangle-down", "cross", "triangle-right", "triangle-left")
#: In a legend, a line is a symbol too: a horizontal stroke, as wide as its dashes need.
LINE_SYMBOL, AREA_SYMBOL = "M-2.5,0L2.5,0", "M-2.5,-1.2L2.5,-1.2L2.5,1.2L-2.5,1.2Z"

WIDTH, HEIGHT = 560, 300
INK, FAINT, GRID = "#222222", "#666666", "#E8E8E8"
#: Average width of a letter relative to the font size, slightly too large, so that text that should fit does.
LETTER = 0.6


@dataclass(frozen=True)
class GroupStyle:
    """How one series is drawn: its colour, and a dash pattern (lines) or shape (marks) that is readable without
    colour.
    """

    colour: str
    dash: list[int]
    shape: str


def style_of(group: Hashable, every: Sequence[Hashable], layer: int = 0) -> GroupStyle:
    """The style of a group by its position in `every`; `layer` counts the trajectories drawn with the same mark.

    >>> style_of("-", ["+", "-"])
    GroupStyle(colour='#E69F00', dash=[7, 3], shape='triangle-up')

    A curve without groups (None) is drawn in black.
    """
    place = every.index(group)
    colour = INK if group is None else PALETTE[place % len(PALETTE)]
    place += layer * len(every)
    return GroupStyle(colour, DASHES[place % len(DASHES)], SHAPES[place % len(SHAPES)])


def axis(title: str | list[str] | None, **settings: Any) -> alt.Axis:
    """An axis in the house style.

    >>> x = alt.X("step:Q", axis=axis("step", tickCount=3)).to_dict()["axis"]
    >>> x["title"], x["tickCount"], x["labelFontSize"]
    ('step', 3, 12)

    Args:
        title: Text of the axis; None: no text.
        **settings: Further options of Altair's `Axis`.
    """
    return alt.Axis(
        **{
            "title": title,
            "titleFontWeight": "normal",
            "titleFontSize": 13,
            "titleColor": INK,
            "titlePadding": 8,
            "labelFontSize": 12,
            "labelColor": INK,
            "labelFlush": False,
            "gridColor": GRID,
            "domainColor": FAINT,
            "tickColor": FAINT,
            "tickSize": 4,
            **settings,
        }
    )


def legend(title: str | list[str] | None, **settings: Any) -> alt.Legend:
    """A legend in the house style.

    >>> colour = alt.Color("group:N", legend=legend("group", orient="bottom")).to_dict()["legend"]
    >>> colour["title"], colour["orient"], colour["labelFontSize"]
    ('group', 'bottom', 12)

    Args:
        title: Text above the legend; None: no text.
        **settings: Further options of Altair's `Legend`.
    """
    return alt.Legend(
        **{
            "title": title,
            "titleFontWeight": "normal",
            "titleFontSize": 12,
            "titleColor": INK,
            "labelFontSize": 12,
            "labelColor": INK,
            "labelLimit": 240,
            "titleLimit": 240,
            "symbolOpacity": 1.0,
            "symbolSize": 80,
            "symbolStrokeWidth": 2,
            "symbolOffset": 6,
            "labelOffset": 14,
            **settings,
        }
    )


def heading(title: str, note: str = "") -> alt.TitleParams:
    """The title of a picture, and in smaller letters below it what its marks are."""
    return alt.TitleParams(
        title,
        subtitle=note or alt.Undefined,
        anchor="start",
        fontSize=14,
        fontWeight="bold",
        color=INK,
        offset=12,
        subtitleFontSize=12,
        subtitleColor=INK,
        subtitlePadding=4,
    )


def frame(
    title: str | None, width: float = WIDTH, height: float = HEIGHT, shows: str = "", note: str = ""
) -> dict[str, Any]:
    """The properties of a picture: its size and, if any, its title.

    >>> chart = alt.Chart(rows([{"step": 1, "loss": 0.5}])).mark_point().encode(x="step:Q", y="loss:Q")
    >>> picture = chart.properties(**frame("Loss over training", width=200)).to_dict()
    >>> picture["width"], picture["title"]["text"]
    (200, 'Loss over training')

    Args:
        title: Text above the picture; None: what it shows.
        width: Width in pixels.
        height: Height in pixels.
        shows: What the picture shows, the title where none is given; empty: no title.
        note: What its marks are, below the title.
    """
    size: dict[str, Any] = {"width": width, "height": height}
    words = shows if title is None else title
    return {**size, "title": heading(words, note)} if words else size


def large(text: str) -> str:
    """A text that begins with a large letter."""
    return text[:1].upper() + text[1:]


def curve_words(curve: str) -> str:
    """What a curve is called on an axis.

    >>> curve_words("error_gap"), curve_words("tpr"), curve_words("class_loss")
    ('difference in error', 'true positive rate', 'class loss')

    Args:
        curve: Name of the curve in a run.
    """
    base = curve.removesuffix("_gap")
    differs = base != curve and base in CURVES and CURVES[curve].meaning.startswith("difference")
    return f"difference in {term(base)}" if differs else term(curve)


def airy(low: float, high: float) -> tuple[float, float]:
    """A range with a margin; values that are constant up to rounding get an axis on which they look constant.

    >>> airy(0.0, 1.0), airy(0.0, 1e-17)
    ((-0.05, 1.05), (-0.5, 0.5))

    Args:
        low: Smallest value.
        high: Largest value.
    """
    if high - low <= 1e-9 * max(1.0, abs(low)):
        return low - 0.5, high + 0.5
    return low - 0.05 * (high - low), high + 0.05 * (high - low)


def rows(values: list[dict[str, Any]]) -> dict[str, Any]:
    """Data embedded in the picture itself: no row limit applies, and no global setting is changed.

    >>> data = rows([{"step": 1, "loss": 0.5}, {"step": 10, "loss": 0.4}])
    >>> data["values"][0]
    {'step': 1, 'loss': 0.5}
    >>> alt.Chart(data).mark_line().encode(x="step:Q", y="loss:Q").to_dict()["mark"]
    {'type': 'line'}

    A plain dictionary, because Altair checks `InlineData` row by row, which takes longer than everything else.

    Args:
        values: One dictionary per row.
    """
    return {"values": values}


def short(value: float) -> float | None:
    """A number with seven digits, which is finer than any pixel; None if there is no value.

    >>> short(1 / 3), short(float("nan"))
    (0.3333333, None)

    Args:
        value: Number to shorten.
    """
    return float(f"{value:.7g}") if abs(value) < float("inf") else None


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

    Args:
        names: Names of the runs, in order.
        lines: Whether the legend shows strokes instead of marks.
        title: Text above the legend; None: no text.
    """
    domain = [visible(name) for name in names]
    settings: dict[str, Any] = {"symbolType": LINE_SYMBOL, "symbolSize": 260} if lines else {}
    settings |= {"orient": "bottom", "columns": 4}
    shared: dict[str, Any] = {"field": "run", "type": "nominal", "sort": None, "legend": legend(title, **settings)}

    def ranged(values: Sequence[Any]) -> alt.Scale:
        return alt.Scale(domain=domain, range=[values[i % len(values)] for i in range(len(domain))])

    return RunChannels(
        alt.Color(scale=ranged(PALETTE), **shared),
        alt.Shape(scale=ranged(SHAPES), **shared),
        alt.StrokeDash(scale=ranged(DASHES), **shared),
    )
