"""Series: one curve of one or several trajectories as series for a chart, one per group and trajectory."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import numpy as np
import xarray as xr

from tiltmeter.over_seeds import over_seeds
from tiltmeter.pairs import SURE
from tiltmeter.plot.promise_rule import promised_since
from tiltmeter.plot.theme import (
    HEIGHT,
    INK,
    LINE_SYMBOL,
    GroupStyle,
    airy,
    axis,
    group_name,
    legend,
    rows,
    short,
    style_of,
)
from tiltmeter.plot.time_axis import thinned
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import numbered

#: Origins that are calculated, not measured: drawn as lines if a chart has both kinds.
CALCULATED = ("theory", "forecast", "moments")


@dataclass(frozen=True)
class Series:
    """One line, or one row of marks, with a band of two standard errors if they are known.

    The label names group and trajectory as far as needed; it is empty if there is only one of each. Before `since` a
    forecast promises nothing. `covers` says of what the band is.
    """

    label: str
    mark: Literal["line", "points"]
    style: GroupStyle
    times: np.ndarray
    middle: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    since: float | None = None
    covers: str = ""


def series_of(
    trajectories: Sequence[Trajectory], curve: str, groups: Sequence[Hashable] | None, labels: Sequence[str] | None
) -> list[Series]:
    """All series of a chart, in the order of the legend: trajectory by trajectory, group by group."""
    names = numbered([one.origin.source for one in trajectories]) if labels is None else list(labels)
    every = groups_among(trajectories, curve)
    wanted = every if groups is None else chosen(every, groups)
    together = any(t.origin.source in CALCULATED for t in trajectories)
    found: list[Series] = []
    layers = {"line": 0, "points": 0}
    for trajectory, name in zip(trajectories, names, strict=True):
        middle, margin = band(trajectory, curve)
        seeds = trajectory[curve].sizes.get("seed", 1)
        covers = f" of the mean over {seeds} seeds" if seeds > 1 else " of each value"
        times = middle.coords["time"].values
        marks = times[times > 0].size < 2 or (together and trajectory.origin.source not in CALCULATED)
        mark: Literal["line", "points"] = "points" if marks else "line"
        for group in wanted:
            if (values := _of_group(middle, group)) is None:
                continue
            error = None if margin is None else _of_group(margin, group)
            parts = ([] if group is None else [group_name(group)]) + ([name] if len(trajectories) > 1 else [])
            found.append(
                Series(
                    label=", ".join(parts),
                    mark=mark,
                    style=style_of(group, every, layers[mark]),
                    times=times,
                    middle=values,
                    low=None if error is None else values - error,
                    high=None if error is None else values + error,
                    since=promised_since(trajectory),
                    covers=covers,
                )
            )
        layers[mark] += 1
    return found


def groups_among(trajectories: Sequence[Trajectory], curve: str) -> list[Hashable]:
    """Every group (or pair of groups) of a curve, in order of appearance; None for a curve without any."""
    found: dict[Hashable, None] = {}
    for trajectory in trajectories:
        values = trajectory[curve]
        extra = [str(dim) for dim in values.dims if dim not in ("time", "group", "pair", "seed")]
        if extra:
            if extra == ["class"]:
                raise ValueError(
                    f"Curve {curve!r} has one value per class: use `plot.class_curves`, or select a class."
                )
            places = ", ".join(f"{dim}=..." for dim in extra)
            raise ValueError(
                f"Curve {curve!r} has a grid over {', '.join(extra)}, and a picture over time shows one run. Select a "
                f"point: trajectory.replace({{{curve!r}: trajectory[{curve!r}].sel({places})}})."
            )
        dim = _dimension(values)
        found.update(dict.fromkeys([None] if dim is None else values.coords[dim].values.tolist()))
    return list(found)


def chosen(every: Sequence[Hashable], groups: Sequence[Hashable]) -> list[Hashable]:
    """The requested groups, checked."""
    for group in groups:
        if group not in every:
            raise KeyError(f"No group {group!r}. There are: {', '.join(map(repr, every))}.")
    return list(groups)


def band(trajectory: Trajectory, curve: str) -> tuple[xr.DataArray, xr.DataArray | None]:
    """The curve, averaged over seeds, and half the width of its band, two standard errors."""
    values = trajectory[curve]
    values = values.where(np.isfinite(values))
    if "seed" in values.dims:
        mean, error = over_seeds(values)
        if values.sizes["seed"] > 1:
            return mean, SURE * error
        values = mean
    if f"{curve}_se" in trajectory:
        error = trajectory[f"{curve}_se"]
        error = error.mean("seed") if "seed" in error.dims else error
        return values, SURE * error.reindex(time=values.coords["time"])
    return values, None


def _dimension(values: xr.DataArray) -> str | None:
    return next((dim for dim in ("group", "pair") if dim in values.dims), None)


def _of_group(values: xr.DataArray, group: Hashable) -> np.ndarray | None:
    dim = _dimension(values)
    labels: list[Any] = [None] if dim is None else values.coords[dim].values.tolist()
    if group not in labels:
        return None
    one = values if dim is None else values.isel({dim: labels.index(group)})
    return one.values


#: Names at the ends of lines are drawn for at most so many series.
NAMED = 6
#: Number of marks of one series: few enough to distinguish circles from triangles.
MARKS = 32


def series_layers(
    series: Sequence[Series], x: alt.X, y_title: str | list[str], legend_title: str | None, height: float = HEIGHT
) -> list[alt.Chart]:
    """Bands at the bottom, then lines, then points; of a few series, the names at the ends.

    All share one legend: lines and marks are symbols of the same scales, and a line's symbol is a stroke.
    """
    y_scale = alt.Scale(domain=list(value_domain(series)), nice=False, zero=False)
    y, low = (alt.Y(f"{field}:Q", scale=y_scale, axis=axis(y_title)) for field in ("value", "low"))
    labels = [one.label for one in series]
    colours = alt.Scale(domain=labels, range=[one.style.colour for one in series])
    dashes = alt.Scale(domain=labels, range=[one.style.dash if one.mark == "line" else [1, 0] for one in series])
    symbols = alt.Scale(domain=labels, range=[LINE_SYMBOL if one.mark == "line" else one.style.shape for one in series])
    title = [*([legend_title] if legend_title else []), *_meanings(series)]
    shared: dict[str, Any] = {
        "field": "series",
        "type": "nominal",
        "sort": None,
        "legend": legend(title or None, orient="bottom", columns=4, titleLimit=520),
    }
    colour = alt.Color(scale=colours, **shared)
    dash = alt.StrokeDash(scale=dashes, **shared)
    shape = alt.Shape(scale=symbols, **shared)

    # Each band is a layer with a constant colour: a fill channel would fill the symbols of the legend, or remove it.
    areas = [
        alt.Chart(rows(_rows(one)))
        .mark_area(opacity=0.22, clip=True, fill=one.style.colour)
        .encode(x, low, alt.Y2("high:Q"))
        for one in series
        if one.low is not None
    ]
    lines = [row for one in series if one.mark == "line" for row in _promised(_rows(one), one.since)]
    # Where it promises nothing a forecast is thin and in short dashes, whatever the dash pattern of its group.
    pale = [row for one in series if one.mark == "line" for row in _not_promised(_rows(one), one.since)]
    points = [row for one in series if one.mark == "points" for row in _rows(one, MARKS) if row["value"] is not None]
    line = alt.Chart(rows(lines)).mark_line(strokeWidth=2, clip=True, strokeJoin="round", color=INK).encode(x, y)
    dots = alt.Chart(rows(points)).mark_point(size=42, strokeWidth=1.6, fill="white", opacity=1.0, color=INK)
    faint = alt.Chart(rows(pale)).mark_line(strokeWidth=1.4, strokeDash=[2, 3], clip=True, color=INK).encode(x, y)
    drawn: list[tuple[alt.Chart, list[dict[str, Any]], list[Any]]] = [
        (line, lines, [colour, dash]),
        (faint, pale, [colour]),
        (dots.encode(x, y), points, [colour, shape]),
    ]
    if labels == [""]:  # one curve without groups: no legend needed
        return [*areas, *(layer for layer, data, _ in drawn if data)]
    # The legend takes its symbols from a layer that draws nothing: a shape channel on lines would add marks to them.
    key = alt.Chart(rows([])).mark_point().encode(colour, dash, shape)
    names = alt.Chart(rows(_ends(series, y_scale.domain, height))).mark_text(align="left", dx=6, fontSize=12, color=INK)
    ends = [names.encode(x, y, text="series:N")] if len(series) <= NAMED else []
    return [*areas, *(layer.encode(*channels) for layer, data, channels in drawn if data), *ends, key]


def _ends(series: Sequence[Series], domain: Any, height: float) -> list[dict[str, Any]]:
    """The name of every series at its last value, moved apart where two would overlap."""
    drawn = [[row for row in _rows(one) if row["value"] is not None] for one in series]
    last = sorted((known[-1] for known in drawn if known), key=lambda row: row["value"])
    least, low = 13.0 * (domain[1] - domain[0]) / height, float("-inf")
    placed = []
    for row in last:
        low = max(row["value"], low + least)
        placed.append({"time": row["time"], "series": row["series"], "value": short(low)})
    excess = max(0.0, low - domain[1])  # the highest stay inside the frame
    return [{**row, "value": short(row["value"] - excess)} for row in placed] if excess else placed


def _meanings(series: Sequence[Series]) -> list[str]:
    """What the bands of a chart are."""
    covers = dict.fromkeys(one.covers for one in series if one.low is not None)
    return [f"bands: ± 2 standard errors{words}" for words in covers]


def _promised(drawn: list[dict[str, Any]], since: float | None) -> list[dict[str, Any]]:
    return drawn if since is None else [row for row in drawn if row["time"] >= since]


def _not_promised(drawn: list[dict[str, Any]], since: float | None) -> list[dict[str, Any]]:
    """The first part of a line, up to the first row that is promised, so that the two parts join."""
    if since is None:
        return []
    before = len(drawn) - len(_promised(drawn, since))
    return drawn[: before + 1] if before else []


def value_domain(series: Sequence[Series]) -> tuple[float, float]:
    """The range of all values and bands, with a margin."""
    drawn = [
        part[(one.times > 0) & np.isfinite(part)]
        for one in series
        for part in (one.middle, one.low, one.high)
        if part is not None
    ]
    values = np.concatenate([np.empty(0), *drawn])
    if values.size == 0:
        raise ValueError("There is nothing to draw: no value at any time after 0.")
    return airy(float(values.min()), float(values.max()))


def _rows(series: Series, most: int | None = None) -> list[dict[str, Any]]:
    places = thinned(series.times) if most is None else thinned(series.times, most)
    drawn = []
    for i in places:
        row: dict[str, Any] = {"time": short(series.times[i]), "series": series.label, "value": short(series.middle[i])}
        if series.low is not None and series.high is not None:
            row |= {"low": short(series.low[i]), "high": short(series.high[i])}
        drawn.append(row)
    return drawn
