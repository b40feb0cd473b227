"""Onset: when the difference of the headline arose, when the lead changed by other measures, and a dated list."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from tiltmeter.analysis.difference import Change, Difference, Stretch
from tiltmeter.names import NOBODY
from tiltmeter.plot.theme import group_name
from tiltmeter.report.findings import Findings, Row
from tiltmeter.report.wording import moment, percents, points, when

#: The model begins or ceases to say yes where its share passes this.
HARDLY = 0.005


class Event(NamedTuple):
    """Something that changed between two looks."""

    first: float
    last: float
    text: str


def onset(one: Difference) -> float | None:
    """The first look from which the difference stays shown with one sign to the end; None if it is not shown there."""
    last = one.stretches[-1] if one.stretches else None
    return None if last is None or last.leader == NOBODY else last.first


def when_did_it_arise(found: Findings) -> str:
    """Since when the headline's difference is shown, and who led before by error and loss."""
    row = found.headline
    if not row.judged or not any(one.judged for one in row.judged):
        return "Not judged."
    if found.two:
        parts = [_two(found, row.judged[0])]
    else:
        shown = [one for one in row.judged if onset(one) is not None]
        parts = [
            f"{group_name(one.pair[0])}: shown from {when(found.clock, onset(one) or 0.0)} to the end."
            for one in shown[:5]
        ]
        if not parts:
            parts = ["No difference from the rest is shown at the end."]
    for curve in ("error", "loss"):
        if curve in found.rows and curve != row.term.curve and found.two:
            parts += [_change(found, curve, one.low, one.high, one.after) for one in _changes(found.rows[curve])]
    return " ".join(parts)


def _two(found: Findings, one: Difference) -> str:
    start, clock = onset(one), found.clock
    end = f"of {moment(found.last)}" if clock != "t" else f"up to t = {moment(found.last)}"
    changes = "".join(f" {_change(found, one.curve, c.low, c.high, c.after)}" for c in one.changes)
    if start is None:
        shown = [stretch for stretch in one.stretches if stretch.leader != NOBODY]
        if not shown:
            return "No difference is shown at any look."
        return f"It is not shown at the end. It was {_span(found, shown[-1])}.{changes}"
    if start == one.times[0]:
        return f"It is there from the first look, {when(clock, start)}, to the end, {when(clock, found.last)}."
    before = [s for s in one.stretches[:-1] if s.leader == one.stretches[-1].leader]
    again = f"It was {_span(found, before[0])}, and is shown again" if len(before) == 1 else "It is shown"
    return f"{again} from {when(clock, start)} {end} on to the end.{changes}"


def _span(found: Findings, one: Stretch) -> str:
    if one.looks == 1:
        return f"shown at {when(found.clock, one.first)}"
    return f"shown from {when(found.clock, one.first)} to {moment(one.last)}"


def _changes(row: Row) -> tuple[Change, ...]:
    return row.judged[0].changes if row.judged else ()


def _change(found: Findings, curve: str, low: float, high: float, after: Hashable) -> str:
    return (
        f"By {curve.replace('_', ' ')} the lead passes to {group_name(after)} between {when(found.clock, low)} and "
        f"{moment(high)}."
    )


def events(found: Findings) -> list[Event]:
    """What changed when, from the positive rate, the leaders and the headline's difference, in order of time."""
    listed: list[Event] = []
    yes = found.rows.get("positive_rate")
    if yes is not None and yes.course is not None:
        listed += _saying_yes(found, yes)
    if found.two:
        for curve, row in found.rows.items():
            for one in row.judged[:1]:
                for change in one.changes:
                    listed.append(
                        Event(change.low, change.high, _change(found, curve, change.low, change.high, change.after))
                    )
        for one in found.headline.judged[:1]:
            start = onset(one)
            if start is not None and start > one.times[0]:
                title = found.headline.term.title.lower()
                listed.append(Event(start, start, f"From here on the difference in {title} is shown, to the end."))
    else:
        for one in found.headline.judged:
            start = onset(one)
            if start is not None:
                ahead = one.stretches[-1].leader == one.pair[0]
                word = "better" if ahead else "worse"
                listed.append(
                    Event(start, start, f"{group_name(one.pair[0])} is shown {word} off than the rest from here on.")
                )
    listed.append(_end(found))
    return sorted(listed, key=lambda event: (event.first, event.last))


def _saying_yes(found: Findings, row: Row) -> list[Event]:
    assert row.course is not None
    times, values = row.course.coords["time"].values.astype(float), row.course.values
    first = percents(*(float(value) for value in values[0][:4]))
    names = found.names[: len(first)]
    told = ", ".join(f"{share} of {name}" for share, name in zip(first, names, strict=True))
    listed = [Event(times[0], times[0], f"At the first look the model says yes to {told}.")]
    quiet = np.nanmax(values, axis=1) < HARDLY
    edges = np.flatnonzero(np.diff(quiet.astype(int))) + 1
    for edge in edges[:6]:
        word = "hardly says yes to anyone" if quiet[edge] else "begins to say yes"
        listed.append(Event(times[edge], times[edge], f"The model {word}."))
    return listed


def _end(found: Findings) -> Event:
    row = found.headline
    gap = row.differences[0]
    if found.two and row.term.share and gap.known:
        word = "is shown" if gap.shown else "is not shown"
        return Event(found.last, found.last, f"At the end the difference is {points(abs(gap.value))} and {word}.")
    return Event(found.last, found.last, "The last look.")
