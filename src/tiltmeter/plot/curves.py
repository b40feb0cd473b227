"""The main picture: group curves over log time, theory as lines and measurements as marks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from textwrap import wrap

import altair as alt
import numpy as np
import xarray as xr

from tiltmeter.leaders.leaders import Leaders
from tiltmeter.leaders.phases import Phase
from tiltmeter.names import NOBODY
from tiltmeter.plot.marks import groups_among, series_layers, series_of
from tiltmeter.plot.offline_charts import Layers
from tiltmeter.plot.promise_rule import promise_layers
from tiltmeter.plot.theme import (
    FAINT,
    HEIGHT,
    INK,
    LETTER,
    WIDTH,
    curve_words,
    frame,
    group_name,
    large,
    rows,
    style_of,
)
from tiltmeter.plot.time_axis import Domain, log_scale, pixels, time_axis, time_domain
from tiltmeter.plot.timescale_rules import timescale_layers
from tiltmeter.record.trajectory import Trajectory

FONT, LINE, STRIP = 11, 14, 4


def curves(
    *runs: Trajectory | str,
    curve: str = "loss",
    leaders: Leaders | None = None,
    timescales: xr.Dataset | None = None,
    groups: Sequence[Hashable] | None = None,
    labels: Sequence[str] | None = None,
    title: str | None = None,
) -> alt.LayerChart:
    """One curve of one or several trajectories against log time, with one colour, dash pattern and shape per group.

    >>> from tiltmeter import leaders, predict, timescales
    >>> from tiltmeter.theory import cases
    >>> problem, sgd, times = cases.three_phases()
    >>> theory = predict(problem, sgd, times, curves=("loss",))
    >>> chart = curves(theory, leaders=leaders(theory), timescales=timescales(problem, sgd))
    >>> chart.to_dict()["layer"][0]["encoding"]["x"]["scale"]["type"]
    'log'

    Calculated curves (theory, forecast) are lines. Measured curves (simulation, training) are lines when drawn alone,
    and marks when drawn together with a calculation. They are averaged over `seed`, with a band of two standard errors
    of that mean (from the scatter over seeds, or from `<curve>_se`). The band shows how well the *mean* is known, not
    how far single runs scatter. Where a forecast promises nothing, it is drawn with thin dashed lines.

    Time 0 is left out because the axis is logarithmic, and curves with more than 500 times are thinned.

    Args:
        *runs: Runs to draw together, and the name of a curve, which may also be given as `curve`.
        curve: Name of the curve, such as "loss" or "error".
        leaders: Shades the background by leader; None: no shades.
        timescales: Marks vertical lines, from `tm.timescales`; None: none.
        groups: Groups or pairs to draw; None: all.
        labels: Names of the runs; None: what made them.
        title: Text above the picture; None: what it shows.
    """
    named = [one for one in runs if isinstance(one, str)]
    curve = named[0] if len(named) == 1 else curve  # curves(run, "tpr")
    trajectories = tuple(one for one in runs if not isinstance(one, str))
    _check(trajectories, curve, labels)
    clock = trajectories[0].clock
    if leaders is not None:
        if not isinstance(leaders, Leaders):
            raise TypeError(f"`leaders` should be the result of `tm.leaders`. Found {type(leaders).__name__}.")
        same_clock("leaders", leaders.clock, clock)
    if timescales is not None:
        same_clock("timescales", "t", clock)
    every = groups_among(trajectories, curve)
    series = series_of(trajectories, curve, groups, labels)
    domain = time_domain(np.concatenate([one.times for one in series]) if series else np.empty(0))
    x = time_axis(clock, domain)
    rules, above = ([], 0.0) if timescales is None else timescale_layers(timescales, domain, WIDTH, HEIGHT)
    shades: list[alt.Chart] = []
    if leaders is not None:
        colours = {group_name(group): style_of(group, every).colour for group in every}
        shades = phase_layers(leaders, curve, colours, domain, WIDTH, HEIGHT, above)
    drawn = series_layers(series, x, y_title(trajectories, curve), legend_title(trajectories, curve))
    ends = promise_layers(trajectories, domain, HEIGHT)
    return Layers(layer=[*shades, *rules, *ends, *drawn]).properties(**frame(title, shows=_shows(trajectories, curve)))


def _shows(trajectories: Sequence[Trajectory], curve: str) -> str:
    """What the picture shows, in words."""
    words, over = curve_words(curve), "training" if trajectories[0].clock != "t" else "time"
    of = {"group": " of each group", "pair": " between groups"}.get(legend_title(trajectories, curve) or "", "")
    return large(f"{words}{of} over {over}")


def same_clock(name: str, found: str, clock: str) -> None:
    """Refuse an annotation whose clock differs from that of the trajectory."""
    if found != clock:
        raise ValueError(f'`{name}` counts time in "{found}", the trajectory in "{clock}": convert it with `on_clock`.')


def y_title(trajectories: Sequence[Trajectory], curve: str) -> list[str]:
    """The curve in words; of a loss also its meaning and, if there are several, all of them."""
    meanings = dict.fromkeys(str(t[curve].attrs["long_name"]) for t in trajectories if "long_name" in t[curve].attrs)
    plain = curve_words(curve)
    explained = meanings and not plain.startswith("difference in")
    text = f"{plain} ({'; '.join(meanings)})" if explained else plain
    return wrap(text, int(HEIGHT / (LETTER * 13)))


def legend_title(trajectories: Sequence[Trajectory], curve: str) -> str | None:
    """What the entries of the legend are, in addition to trajectories."""
    return next((dim for dim in ("group", "pair") if any(dim in t[curve].dims for t in trajectories)), None)


def _check(trajectories: Sequence[Trajectory], curve: str, labels: Sequence[str] | None) -> None:
    if not trajectories:
        raise ValueError("`curves` needs at least one trajectory. Found none.")
    for trajectory in trajectories:
        if not isinstance(trajectory, Trajectory):
            raise TypeError(f"`curves` draws trajectories. Found {type(trajectory).__name__}.")
        trajectory[curve]  # a KeyError that lists what there is
    clocks = list(dict.fromkeys(trajectory.clock for trajectory in trajectories))
    if len(clocks) > 1:
        raise ValueError(
            f'Cannot draw clocks "{clocks[0]}" and "{clocks[1]}" on one axis: convert one with `on_clock`, as in '
            f'run.on_clock("{clocks[0]}", ...).'
        )
    if labels is not None and len(set(labels)) != len(trajectories):
        raise ValueError(
            f"`labels` should name every trajectory differently. Found {list(labels)} for {len(trajectories)}."
        )


def phase_layers(
    leaders: Leaders, curve: str, colours: Mapping[str, str], domain: Domain, width: float, height: float, above: float
) -> list[alt.Chart]:
    """Shades behind the curves, and a strip and text above them, starting `above` pixels over the frame.

    Stretches in which no leader is clear stay white.

    The text depends on the width of the phase: leader and driver, the leader alone, or only the tooltip.
    """
    visible = [
        phase
        for phase in leaders.phases
        if phase.leader != NOBODY and phase.stop > max(phase.start, domain[0]) and phase.start < domain[1]
    ]
    if not visible:
        return []
    suffix = "" if leaders.curve == curve else f" in {leaders.curve}"
    texts = [phase_text(phase, suffix, _span(phase, domain, width)) for phase in visible]
    tallest = max(len(who) + len(why) for who, why in texts)
    shades, words = [], []
    for phase, (who, why) in zip(visible, texts, strict=True):
        start, stop = max(phase.start, domain[0]), min(phase.stop, domain[1])
        leader = group_name(phase.leader)
        shades.append(
            {"time": start, "stop": stop, "colour": colours.get(leader, FAINT)}
            | {"leader": leader, "reason": phase.reason or ""}
        )
        for i, line in enumerate([*who, *why]):
            y = -above - STRIP - 4 - LINE * (tallest - 1 - i)
            words.append({"time": (start * stop) ** 0.5, "y": y, "text": line, "bold": i < len(who)})
    x = alt.X("time:Q", scale=log_scale(domain))
    columns = (("leader:N", "leader"), ("reason:N", "reason"), ("time:Q", "from"), ("stop:Q", "until"))
    told = [alt.Tooltip(field, title=name) for field, name in columns]
    # Colours are constants of the mark: a colour channel here would remove the legend of the curves.
    spanning = alt.Chart(rows(shades)).encode(x, alt.X2("stop:Q"), tooltip=told)
    fill = alt.ExprRef("datum.colour")
    inner = [{"time": shade["stop"]} for shade in shades[:-1]]
    return [
        spanning.mark_rect(fill=fill, opacity=0.11).encode(y=alt.value(-above), y2=alt.value(height)),
        spanning.mark_rect(fill=fill, opacity=1.0).encode(y=alt.value(-above - STRIP), y2=alt.value(-above)),
        alt.Chart(rows(inner))
        .mark_rule(color=FAINT, strokeWidth=1)
        .encode(x, y=alt.value(-above), y2=alt.value(height)),
        alt.Chart(rows(words))
        .mark_text(
            fontSize=FONT, baseline="bottom", color=INK, fontWeight=alt.ExprRef("datum.bold ? 'bold' : 'normal'")
        )
        .encode(x, alt.Y("y:Q", scale=None, axis=None), text="text:N"),
    ]


def phase_text(phase: Phase, suffix: str, width: float) -> tuple[list[str], list[str]]:
    """The lines of text that fit over a phase of this width in pixels: who leads, and why.

    >>> phase = Phase(1.0, 9.0, "+", 0.1, "shift", "shift and label imbalance")
    >>> phase_text(phase, "", 120.0)
    (['+ leads'], ['shift and label', 'imbalance'])
    >>> phase_text(phase, "", 20.0)
    (['+'], [])
    """
    letters = int(width / (LETTER * FONT))
    leader = group_name(phase.leader)
    who = _fitting(f"{leader} leads{suffix}", letters, 2)
    if not who:
        return _fitting(leader, letters, 1), []
    return who, _fitting(phase.reason or "", letters, 3)


def _fitting(text: str, letters: int, lines: int) -> list[str]:
    found = wrap(text, max(letters, 1), break_long_words=False)
    return found if len(found) <= lines and all(len(line) <= letters for line in found) else []


def _span(phase: Phase, domain: Domain, width: float) -> float:
    start, stop = max(phase.start, domain[0]), min(phase.stop, domain[1])
    return pixels(stop, domain, width) - pixels(start, domain, width)
