"""Phase shades: the background of each phase in its leader's colour, with leader and driver above the chart."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap

import altair as alt

from tiltmeter.leaders.leaders import Leaders
from tiltmeter.leaders.phases import Phase
from tiltmeter.names import NOBODY
from tiltmeter.plot.theme import FAINT, INK, LETTER, group_name, rows
from tiltmeter.plot.time_axis import Domain, log_scale, pixels

FONT, LINE, STRIP = 11, 14, 4


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
