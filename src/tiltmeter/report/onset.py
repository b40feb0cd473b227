"""Onset: when the difference of the headline arose, when the lead changed by other measures, and a dated list."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiltmeter.leaders.difference import Change, Difference, Stretch
from tiltmeter.names import NOBODY
from tiltmeter.plot.theme import group_name
from tiltmeter.report.findings import Findings, Row
from tiltmeter.report.headline import plain_name
from tiltmeter.report.starts import lasting, turning
from tiltmeter.report.wording import listed, moment, percents, points, when

#: The model begins or ceases to say yes where its share passes this.
HARDLY = 0.005


class Event(NamedTuple):
    """Something that changed between two evaluations."""

    first: float
    last: float
    text: str


def onset(one: Difference) -> float | None:
    """The first evaluation from which the difference stays shown with one sign to the end; None if it is not shown
    there."""
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
            parts += [_change(found, one, change) for one in found.rows[curve].judged[:1] for change in one.changes]
    return " ".join(parts)


def _two(found: Findings, one: Difference) -> str:
    start, clock = onset(one), found.clock
    end = f"of {moment(found.last)}" if clock != "t" else f"up to t = {moment(found.last)}"
    changes = "".join(f" {_change(found, one, change)}" for change in one.changes)
    if start is None:
        shown = [stretch for stretch in one.stretches if stretch.leader != NOBODY]
        if not shown:
            return "No difference is shown at any evaluation."
        return f"It is not shown at the end. It was shown {_spans(found, shown)}.{changes}"
    starts = lasting(found, one, start)
    if start == one.times[0]:
        return (
            f"It is there from the first evaluation, {when(clock, start)}, to the end, "
            f"{when(clock, found.last)}.{starts}"
        )
    before = [s for s in one.stretches[:-1] if s.leader == one.stretches[-1].leader]
    again = f"It was shown {_spans(found, before)}, and is shown again" if before else "It is shown"
    return f"{again} from {when(clock, start)} {end} on to the end.{starts}{changes}"


def _spans(found: Findings, stretches: list[Stretch]) -> str:
    """The evaluations of up to three stretches; of more, how many evaluations and between which."""
    if len(stretches) > 3:
        evaluations = sum(one.evaluations for one in stretches)
        return (
            f"at {evaluations} evaluations between {when(found.clock, stretches[0].first)} and "
            f"{moment(stretches[-1].last)}"
        )
    return listed(
        [
            f"at {when(found.clock, one.first)}"
            if one.evaluations == 1
            else f"from {when(found.clock, one.first)} to {moment(one.last)}"
            for one in stretches
        ]
    )


def _change(found: Findings, one: Difference, change: Change) -> str:
    starts = turning(found, one, change.low, change.high)
    return (
        f"By {one.curve.replace('_', ' ')} the lead passes to {group_name(change.after)} between "
        f"{when(found.clock, change.low)} and {moment(change.high)}{starts}."
    )


def events(found: Findings) -> list[Event]:
    """What changed when, from the positive rate, the leaders and the headline's difference, in order of time."""
    told: list[Event] = []
    yes = found.rows.get("positive_rate")
    if yes is not None and yes.course is not None:
        told += _saying_yes(found, yes)
    if found.two:
        for row in found.rows.values():
            for one in row.judged[:1]:
                told += [Event(change.low, change.high, _change(found, one, change)) for change in one.changes]
        title = plain_name(found.headline)
        for one in found.headline.judged[:1]:
            start = onset(one)
            if start is not None and start > one.times[0]:
                told.append(Event(start, start, f"From here on the difference in {title} is shown, to the end."))
            passed = [stretch for stretch in one.stretches[:-1] if stretch.leader != NOBODY]
            if passed:
                text = f"The difference in {title} is shown {_spans(found, passed)}."
                told.append(Event(passed[0].first, passed[0].last, text))
    else:
        for one in found.headline.judged:
            start = onset(one)
            if start is not None:
                ahead = one.stretches[-1].leader == one.pair[0]
                word = "better" if ahead else "worse"
                told.append(
                    Event(start, start, f"{group_name(one.pair[0])} is shown {word} off than the rest from here on.")
                )
    told.append(_end(found))
    return sorted(told, key=lambda event: (event.first, event.last))


def _saying_yes(found: Findings, row: Row) -> list[Event]:
    assert row.course is not None
    times, values = row.course.coords["time"].values.astype(float), row.course.values
    shares = _first_shares(found, values[0])
    told = [Event(times[0], times[0], f"At the first evaluation the model says yes to {shares}.")]
    quiet = np.nanmax(values, axis=1) < HARDLY
    edges = np.flatnonzero(np.diff(quiet.astype(int))) + 1
    for edge in edges[:6]:
        word = "hardly says yes to anyone" if quiet[edge] else "begins to say yes"
        told.append(Event(times[edge], times[edge], f"The model {word}."))
    return told


def _first_shares(found: Findings, values: np.ndarray) -> str:
    """The share of every group up to four; of more, or where all are alike, the smallest and the largest."""
    told = percents(*(float(value) for value in values))
    if len(set(told)) == 1:
        return f"{told[0]} of {'both groups' if found.two else 'every group'}"
    if len(told) > 4:
        low, high = int(np.nanargmin(values)), int(np.nanargmax(values))
        return f"between {told[low]} of {found.names[low]} and {told[high]} of {found.names[high]}"
    return listed([f"{share} of {name}" for share, name in zip(told, found.names, strict=True)])


def _end(found: Findings) -> Event:
    row = found.headline
    gap = row.differences[0]
    if found.two and row.term.share and gap.known:
        word = "is shown" if gap.shown else "is not shown"
        return Event(found.last, found.last, f"At the end the difference is {points(abs(gap.value))} and {word}.")
    return Event(found.last, found.last, "The last evaluation.")
