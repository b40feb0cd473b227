"""Onset: when the difference of the headline arose, when the lead changed by other measures, and a dated list."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiltmeter.leaders.difference import ALL, Change, Difference, Stretch
from tiltmeter.names import NOBODY
from tiltmeter.plot.theme import group_name
from tiltmeter.report.findings import Findings, Row
from tiltmeter.report.wording import listed, moment, percents, points, when

#: The model begins or ceases to decide positive where its share passes this.
HARDLY = 0.005
#: Of many pairs of groups, so many are told.
MOST = 5


class Event(NamedTuple):
    """Something that changed between two evaluations."""

    first: float
    last: float
    text: str


def pair_name(one: Difference) -> str:
    """Two groups in a sentence."""
    return " and ".join(map(group_name, one.pair))


def when_did_it_arise(found: Findings) -> str:
    """Since when the headline's difference is clear, and when the lead changed by error and loss."""
    row = found.headline
    judged = [one for one in row.judged if one.judged]
    if not judged:
        return "Not judged."
    clear = sorted((one for one in judged if one.sign[-1]), key=lambda one: -abs(float(one.gap[-1])))
    if found.two or not clear:
        parts = [_one(found, clear[0] if clear else judged[0], found.two or len(judged) == 1)]
    else:
        parts = [f"{pair_name(one)}: clear {_span(found, one.stretches[-1])}." for one in clear[:MOST]]
    for curve in ("error", "loss"):
        if curve in found.rows and curve != row.term.curve and found.two:
            parts += [_change(found, one, change) for one in found.rows[curve].judged[:1] for change in one.changes]
    return " ".join(parts)


def _one(found: Findings, one: Difference, only: bool) -> str:
    start, clock = one.since, found.clock
    end = f"of {moment(found.last)}" if clock != "t" else f"up to t = {moment(found.last)}"
    changes = "".join(f" {_change(found, one, change)}" for change in one.changes)
    if np.isnan(start):
        clear = [stretch for stretch in one.stretches if stretch.leader != NOBODY]
        if not clear or not only:
            return "No difference is clear at the end." if not only else "No difference is clear at any evaluation."
        return f"It is not clear at the end. It was clear {_spans(found, clear)}.{changes}"
    seeds = _lasting(found, one, start)
    if start == one.times[0]:
        return f"It is clear from the first evaluation of the trained model, {when(clock, start)}, to the end.{seeds}"
    before = [stretch for stretch in one.stretches[:-1] if stretch.leader == one.stretches[-1].leader]
    again = f"It was clear {_spans(found, before)}, and is clear again" if before else "It is clear"
    return f"{again} from {when(clock, start)} {end} on to the end.{seeds}{changes}"


def _span(found: Findings, one: Stretch) -> str:
    if one.evaluations == 1:
        return f"at {when(found.clock, one.first)}"
    return f"from {when(found.clock, one.first)} to {moment(one.last)}"


def _spans(found: Findings, stretches: list[Stretch]) -> str:
    """The evaluations of up to three stretches; of more, how many evaluations and between which."""
    if len(stretches) > 3:
        evaluations = sum(one.evaluations for one in stretches)
        first, last = when(found.clock, stretches[0].first), moment(stretches[-1].last)
        return f"at {evaluations} evaluations between {first} and {last}"
    return listed([_span(found, one) for one in stretches])


def _change(found: Findings, one: Difference, change: Change) -> str:
    seeds = _turning(found, one, change.low, change.high)
    return (
        f"By {found.rows[one.curve].term.name} the lead passes to {group_name(change.after)} between "
        f"{when(found.clock, change.low)} and {moment(change.high)}{seeds}."
    )


def _turning(found: Findings, one: Difference, low: float, high: float) -> str:
    """In how many seeds the difference has at both evaluations the sign that it has on average; "" of a single run."""
    same = _same_sign(found, one)
    if same is None:
        return ""
    places = [int(np.abs(one.times - time).argmin()) for time in (low, high)]
    return f" (in {_of(np.all(same[places], axis=0))})"


def _lasting(found: Findings, one: Difference, start: float) -> str:
    """In how many seeds the difference keeps its sign from an evaluation on to the end; "" of a single run."""
    same = _same_sign(found, one)
    if same is None:
        return ""
    return f" It keeps its sign from there on in {_of(np.all(same[one.times >= start], axis=0))}."


def _of(seeds: np.ndarray) -> str:
    return f"{int(np.sum(seeds))} of {len(seeds)} seeds"


def _same_sign(found: Findings, one: Difference) -> np.ndarray | None:
    """(evaluations, seeds): whether the difference of a seed has the sign of the mean over seeds."""
    curve = found.run[one.curve]
    if "seed" not in curve.dims or curve.sizes["seed"] < 2 or ALL in one.pair:
        return None
    groups = curve.coords["group"].values.tolist()
    values = curve.sel(time=one.times).transpose("group", "time", "seed").values.astype(float)
    gaps = values[groups.index(one.pair[0])] - values[groups.index(one.pair[1])]
    gaps = gaps[:, np.isfinite(gaps).all(0)]
    return np.asarray(np.sign(gaps) == np.sign(one.gap)[:, None])


def events(found: Findings) -> list[Event]:
    """What changed when, from the selection rate, the leaders and the headline's difference, in order of time."""
    listing: list[Event] = []
    selected = found.rows.get("positive_rate")
    if selected is not None and selected.course is not None:
        listing += _selecting(found, selected)
    rows = list(found.rows.values()) if found.two else [found.headline]
    for row in rows:
        for one in row.judged:
            listing += [Event(change.low, change.high, _change(found, one, change)) for change in one.changes]
    title = found.headline.term.name
    for one in found.headline.judged:
        start, named = one.since, "" if found.two else f" between {pair_name(one)}"
        if start > one.times[0]:
            listing.append(Event(start, start, f"From here on the difference in {title}{named} is clear, to the end."))
        passed = [stretch for stretch in one.stretches[:-1] if stretch.leader != NOBODY]
        if passed and found.two:
            text = f"The difference in {title} is clear {_spans(found, passed)}."
            listing.append(Event(passed[0].first, passed[0].last, text))
    listing.append(_end(found))
    return sorted(listing, key=lambda event: (event.first, event.last))


def _selecting(found: Findings, row: Row) -> list[Event]:
    assert row.course is not None
    times, values = row.course.coords["time"].values.astype(float), row.course.values
    shares = _first_shares(found, values[0])
    listing = [Event(times[0], times[0], f"At the first evaluation the selection rate is {shares}.")]
    quiet = np.nanmax(values, axis=1) < HARDLY
    for edge in (np.flatnonzero(np.diff(quiet.astype(int))) + 1)[:6]:
        word = "hardly selects anyone" if quiet[edge] else "begins to select"
        listing.append(Event(times[edge], times[edge], f"The model {word}."))
    return listing


def _first_shares(found: Findings, values: np.ndarray) -> str:
    """The share of every group up to four; of more, or where all are alike, the smallest and the largest."""
    shares = percents(*(float(value) for value in values))
    if len(set(shares)) == 1:
        return f"{shares[0]} in {'both groups' if found.two else 'every group'}"
    if len(shares) > 4:
        low, high = int(np.nanargmin(values)), int(np.nanargmax(values))
        return f"between {shares[low]} ({found.names[low]}) and {shares[high]} ({found.names[high]})"
    return listed([f"{share} for {name}" for share, name in zip(shares, found.names, strict=True)])


def _end(found: Findings) -> Event:
    row = found.headline
    if row.clear:
        pair, gap = row.clear[0]
        names = " and ".join(map(group_name, pair))
        size = points(gap.value) if row.term.share else f"{gap.value:.3g}"
        text = f"At the end the difference in {row.term.name} between {names} is {size} and clear."
        return Event(found.last, found.last, text)
    return Event(found.last, found.last, f"At the end no difference in {row.term.name} is clear.")
