"""Strips: who is shown to be better off when, one strip for each measure, or for each group against the rest."""

from __future__ import annotations

from collections.abc import Hashable

from tiltmeter.leaders.difference import Difference
from tiltmeter.names import NOBODY
from tiltmeter.plot.theme import group_name
from tiltmeter.report import svg
from tiltmeter.report.findings import Findings, Row
from tiltmeter.report.frame import BOLD, NARROW, PLAIN, Frame, short
from tiltmeter.report.stretched_axis import StretchedAxis

#: Strips of groups that are drawn; those with something shown come first.
MOST_STRIPS = 12


def strips(found: Findings, axis: StretchedAxis, frame: Frame, y: float) -> tuple[list[str], float]:
    """One strip for each measure (two groups) or for each group against the rest; and where the last one ends."""
    rows: list[tuple[str, Difference]] = []
    if found.two:
        title = "Who is better off, by each measure"
        rows = [(_strip_name(row), row.judged[0]) for row in found.rows.values() if row.judged and row.judged[0].judged]
    else:
        title = f"{found.headline.term.title}: each group against the rest"
        judged = [one for one in found.headline.judged if one.judged]
        judged.sort(key=lambda one: not one.sign.any())
        rows = [(group_name(one.pair[0]), one) for one in judged[:MOST_STRIPS]]
    if not rows:
        return [], y - 20
    room = frame.width - frame.left
    start = frame.left if BOLD * len(title) <= room else 2.0  # a long title begins at the edge of a narrow picture
    parts = [svg.text(start, y - 6, short(title, frame.width - start), "sh")]
    for name, one in rows:
        above = frame is NARROW and not found.two  # names of groups need more room than those of measures
        if above:
            parts.append(svg.text(frame.left, y + 10, short(name, frame.room + frame.right, PLAIN), "sl"))
            y += 14
        else:
            parts.append(svg.text(frame.left - 5, y + 12, short(name, frame.left - 5, PLAIN), "sl", "end"))
        parts += _strip(found, one, axis, frame, y)
        y += 21
    return parts, y


def _strip_name(row: Row) -> str:
    short = {
        "tpr": "Found",
        "fpr": "Wrongly yes",
        "positive_rate": "Said yes",
        "error": "Error",
        "squared_error": "Sq. error",
    }
    return short.get(row.term.curve, row.term.title)


def _strip(found: Findings, one: Difference, axis: StretchedAxis, frame: Frame, y: float) -> list[str]:
    parts = []
    edges = [stretch.first for stretch in one.stretches] + [found.last]
    neither = found.rows[one.curve].term.better == "neither"
    for stretch, end in zip(one.stretches, edges[1:], strict=True):
        x0, x1 = (frame.left + float(axis.place(time)) * frame.room for time in (stretch.first, end))
        if stretch is one.stretches[-1]:
            x1 = frame.left + frame.room
        kind, words = _who(found, one, stretch.leader, neither)
        parts.append(svg.box(x0, y, max(x1 - x0, 1.5), 16, f"st {kind}"))
        fitting = next((text for text in words if 6.4 * len(text) + 8 < x1 - x0), None)
        if fitting:
            parts.append(svg.text((x0 + x1) / 2, y + 12, fitting, f"stx {kind}", "middle"))
    return parts


def _who(found: Findings, one: Difference, leader: Hashable, neither: bool) -> tuple[str, list[str]]:
    if leader == NOBODY:
        return "none", ["no difference shown", "not shown"]
    if found.two:
        name = group_name(leader)
        kind = f"g{found.groups.index(leader)}"
        return kind, [f"{name} {'more' if neither else 'better off'}", name]
    ahead = leader == one.pair[0]
    return ("up", ["better off", "better"]) if ahead else ("down", ["worse off", "worse"])
