"""The loss plane: mean loss against worst-group loss, one line per run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np

from tiltmeter.leaders.scorecard.group_values import GroupValues, on_common_stretch, training_shares
from tiltmeter.leaders.scorecard.scorecard import Scorecard
from tiltmeter.plot.offline_charts import Layers, Panels
from tiltmeter.plot.theme import (
    FAINT,
    INK,
    PALETTE,
    airy,
    axis,
    curve_words,
    frame,
    group_name,
    heading,
    large,
    legend,
    rows,
    run_channels,
    short,
)
from tiltmeter.plot.theme import WIDTH as FULL_WIDTH
from tiltmeter.plot.time_axis import thinned, time_axis, time_domain
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import visible

SIDE = 320


def areas(card: Scorecard, title: str | None = None) -> alt.LayerChart:
    """The gap over training against the worst group over training: low and left is better, left alone is not.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> laws = {"plain": (), "balanced": (tm.interventions.Balanced(by="draws"),)}
    >>> runs = {name: tm.predict(problem, tm.SGD(lr=0.2, interventions=law), [0.0, 60.0]) for name, law in laws.items()}
    >>> len(areas(tm.scorecard(runs)).to_dict()["layer"])
    3

    Small marks are seeds, large ones their mean. A run that lies left of the baseline and above it levels down.

    Args:
        card: Result of `tm.scorecard`.
        title: Text above the picture; None: what it shows.
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
    over = f"{curve_words(card.curve)}, mean over training"
    x = alt.X("x:Q", scale=alt.Scale(domain=list(spans[0]), nice=False), axis=axis(f"gap in {over}"))
    y = alt.Y("y:Q", scale=alt.Scale(domain=list(spans[1]), nice=False), axis=axis(f"worst group's {over}"))
    channels = run_channels([row.name for row in card.rows])
    layers = [
        alt.Chart(rows(dots)).mark_point(size=18, opacity=0.6).encode(x, y, channels.colour, channels.shape),
        alt.Chart(rows(means))
        .mark_point(size=110, strokeWidth=2.2, opacity=1.0)
        .encode(x, y, channels.colour, channels.shape),
    ]
    dotted = "Small marks: seeds. " if any(len(row.areas_by_seed) > 1 for row in card.rows) else ""
    shows, note = "Worst group against gap, over the whole training", f"{dotted}Low and left is better."
    return Layers(layer=[*layers, _names_of_runs(means, x, y)]).properties(
        **frame(title, SIDE * 1.3, SIDE, shows=shows, note=note)
    )


def _names_of_runs(ends: list[dict[str, Any]], x: alt.X, y: alt.Y) -> alt.Chart:
    """The name of every run beside its mark."""
    names = alt.Chart(rows(ends)).mark_text(align="left", dx=9, dy=-7, fontSize=12, color=INK)
    placed: alt.Chart = names.encode(x, y, text="run:N")
    return placed


#: Height of one line of the picture.
LINE = 26
WIDTH = 460


def who_paid(card: Scorecard, title: str | None = None) -> alt.LayerChart:
    """For every run and group, the value in the baseline (open mark) and in the run (full mark) at the selected
    evaluation.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> laws = {"plain": (), "balanced": (tm.interventions.Balanced(by="draws"),)}
    >>> runs = {name: tm.predict(problem, tm.SGD(lr=0.2, interventions=law), [0.0, 60.0]) for name, law in laws.items()}
    >>> who_paid(tm.scorecard(runs)).to_dict()["layer"][0]["mark"]["type"]
    'rule'

    Lines to the right are losses for that group. A long line is not a certain one: errors stand in the scorecard.

    Args:
        card: Result of `tm.scorecard`.
        title: Text above the picture; None: what it shows.
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
        raise ValueError("There is nothing to draw: no run has a value at the selected evaluation.")
    order = [piece["line"] for piece in pieces]
    scale = alt.Scale(domain=list(airy(min(values), max(values))), nice=False)
    y = alt.Y("line:N", sort=order, axis=axis(None, labelLimit=320, grid=False))
    kinds = ["worse off", "better off"]
    colour = alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=[PALETTE[4], PALETTE[0]]), legend=legend(None))
    written = axis(f"{curve_words(card.curve)}: open mark {visible(card.baseline.name)}, full mark the run")
    at_old, at_new = (alt.X(f"{name}:Q", scale=scale, axis=written) for name in ("old", "new"))
    data = rows(pieces)
    layers = [
        alt.Chart(data).mark_rule(strokeWidth=2).encode(at_old, y, colour, alt.X2("new:Q")),
        alt.Chart(data).mark_point(size=60, fill="white", opacity=1.0, stroke=FAINT).encode(at_old, y),
        alt.Chart(data).mark_point(size=60, filled=True, opacity=1.0).encode(at_new, y, colour),
    ]
    return Layers(layer=layers).properties(
        **frame(title, WIDTH, LINE * len(order), shows=f"Who pays, and who gains, in {curve_words(card.curve)}")
    )


UPPER, LOWER = 240, 150


def pulls(runs: Mapping[str, Trajectory], curve: str = "loss", title: str | None = None) -> alt.VConcatChart:
    """The worst group (full line) and the best (thin line) of every run, and the pull on its worst-off group.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> laws = {"plain": (), "DRO": (tm.interventions.GroupDRO(rate=5.0, by="draws"),)}
    >>> times = [0.0, 1.0, 5.0, 20.0, 60.0]
    >>> runs = {name: tm.predict(problem, tm.SGD(lr=0.2, interventions=law), times) for name, law in laws.items()}
    >>> len(pulls(runs).to_dict()["vconcat"])
    2

    The lower panel has a line for every run that recorded its pulls: the pull on the group that is worst off in the
    first run at its end. Without any, there is no lower panel. Seeds are averaged.

    Args:
        runs: Runs by name.
        curve: Name of the curve, such as "loss" or "error".
        title: Text above the picture; None: what it shows.
    """
    if not runs:
        raise ValueError("`pulls` needs at least one run by name. Found none.")
    found = on_common_stretch(runs, curve)
    first = next(iter(found.values()))
    group = first.groups[int(np.nanargmax(first.values[:, -1].mean(axis=0)))]
    domain = time_domain(np.concatenate([one.times for one in found.values()]))
    clock = next(iter(runs.values())).clock
    channels = run_channels(list(found), lines=True)

    def panel(which: str) -> list[dict[str, Any]]:
        return [row for name, one in found.items() for row in _line(name, one, which)]

    y = alt.Y("value:Q", scale=alt.Scale(zero=False), axis=axis([curve_words(curve), "worst (thick), best (thin)"]))
    pulled = [row for name, run in runs.items() if "pull" in run for row in _pull(name, run, group, domain[1])]
    x = time_axis(clock, domain, labels=not pulled)
    upper = Layers(
        layer=[
            alt.Chart(rows(panel("worst"))).mark_line(strokeWidth=2.4).encode(x, y, channels.colour, channels.dash),
            alt.Chart(rows(panel("best"))).mark_line(strokeWidth=1).encode(x, y, channels.colour, channels.dash),
        ]
    ).properties(width=FULL_WIDTH, height=UPPER)
    lower_y = alt.Y("value:Q", axis=axis(["group weight", f"on {group_name(group)}"]))
    below = alt.Chart(rows(pulled)).mark_line(strokeWidth=2)
    lower = below.encode(time_axis(clock, domain), lower_y, channels.colour, channels.dash)
    panels = [upper, lower.properties(width=FULL_WIDTH, height=LOWER)] if pulled else [upper]
    both = Panels(vconcat=panels, spacing=8)
    shows = large(f"{curve_words(curve)} of the worst and the best group over training")
    return both.properties(title=heading(shows if title is None else title))


def _line(name: str, run: GroupValues, which: str) -> list[dict[str, Any]]:
    per_seed = run.values.max(axis=2) if which == "worst" else run.values.min(axis=2)
    mean = per_seed.mean(axis=0)
    return [
        {"time": float(run.times[i]), "value": short(mean[i]), "run": visible(name)}
        for i in thinned(run.times).tolist()
    ]


def _pull(name: str, run: Trajectory, group: Any, end: float) -> list[dict[str, Any]]:
    curve = run["pull"]
    curve = curve.mean("seed") if "seed" in curve.dims else curve
    values = curve.isel(group=curve.coords["group"].values.tolist().index(group)).transpose("time").values
    times = curve.coords["time"].values.astype(float)
    return [
        {"time": float(times[i]), "value": short(values[i]), "run": visible(name)}
        for i in thinned(times).tolist()
        if times[i] <= end
    ]


PLANE_SIDE = 360
#: Marks along every line, at equal steps.
MARKS = 11


def loss_plane(
    runs: Mapping[str, Trajectory],
    curve: str = "loss",
    shares: Mapping[Any, float] | None = None,
    title: str | None = None,
) -> alt.LayerChart:
    """Where every run goes in the plane of mean (falling to the right) and worst group; marks stand at equal steps.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> laws = {"plain": (), "balanced": (tm.interventions.Balanced(by="draws"),)}
    >>> times = [0.0, 1.0, 5.0, 20.0, 60.0]
    >>> runs = {name: tm.predict(problem, tm.SGD(lr=0.2, interventions=law), times) for name, law in laws.items()}
    >>> loss_plane(runs).to_dict()["layer"][1]["mark"]["type"]
    'line'

    On the dashed diagonal all groups are alike. A run that is only faster moves further along the same line; one that
    changes the path is another line; levelling down ends high on the diagonal. Seeds are averaged.

    Args:
        runs: Runs by name.
        curve: Name of the curve, such as "loss" or "error".
        shares: Share of each group, by which means are weighted; None: those the first run recorded.
        title: Text above the picture; None: what it shows.
    """
    if not runs:
        raise ValueError("`loss_plane` needs at least one run by name. Found none.")
    found = on_common_stretch(runs, curve)
    first = next(iter(found))
    weights, _ = training_shares(runs[first], found[first].groups, shares)
    lines: list[dict[str, Any]] = []
    marks: list[dict[str, Any]] = []
    for name, one in found.items():
        label = visible(name)
        mean, worst = (one.values @ weights).mean(axis=0), one.values.max(axis=2).mean(axis=0)
        every = np.union1d([0], thinned(one.times))
        lines += [{"x": short(mean[i]), "y": short(worst[i]), "time": float(one.times[i]), "run": label} for i in every]
        for time in np.linspace(one.times[0], one.times[-1], MARKS):
            across, up = (float(np.interp(time, one.times, values)) for values in (mean, worst))
            marks.append({"x": short(across), "y": short(up), "time": float(time), "run": label})
    known = [row for row in lines if row["x"] is not None and row["y"] is not None]
    if not known:
        raise ValueError("There is nothing to draw: no evaluation has a value.")
    spans = [airy(min(row[key] for row in known), max(row[key] for row in known)) for key in ("x", "y")]
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=list(spans[0]), nice=False, reverse=True),
        axis=axis(f"mean {curve_words(curve)}, falling to the right"),
    )
    y = alt.Y(
        "y:Q", scale=alt.Scale(domain=list(spans[1]), nice=False), axis=axis(f"{curve_words(curve)} of the worst group")
    )
    channels = run_channels(list(found))
    low, high = max(spans[0][0], spans[1][0]), min(spans[0][1], spans[1][1])
    diagonal = [{"x": short(low), "y": short(low)}, {"x": short(high), "y": short(high)}]
    layers = [
        alt.Chart(rows(diagonal)).mark_line(color=FAINT, strokeDash=[4, 4], strokeWidth=1).encode(x, y),
        alt.Chart(rows(lines)).mark_line(strokeWidth=2).encode(x, y, channels.colour, order="time:Q"),
        alt.Chart(rows(marks))
        .mark_point(size=40, strokeWidth=1.4, fill="white", opacity=1.0)
        .encode(x, y, channels.colour, channels.shape),
    ]
    ends = [row for row in marks if row["time"] == max(one["time"] for one in marks if one["run"] == row["run"])]
    shows = f"Where each training goes: mean {curve_words(curve)} and the worst group's"
    note = "Marks at equal steps. On the dashed line all groups are alike."
    return Layers(layer=[*layers, _names_of_runs(ends, x, y)]).properties(
        **frame(title, PLANE_SIDE * 1.3, PLANE_SIDE, shows=shows, note=note)
    )
