"""Strips: who is clearly better off when, one strip for each measure of two groups, or for each pair of more."""

from __future__ import annotations

from collections.abc import Hashable

from tiltmeter.leaders.difference import ALL, Difference
from tiltmeter.names import NOBODY
from tiltmeter.plot.theme import group_name
from tiltmeter.report import svg
from tiltmeter.report.axes import BOLD, NARROW, PLAIN, WIDE, Frame, StretchedAxis, short, stretched_axis
from tiltmeter.report.findings import Findings, Row
from tiltmeter.report.html import figure
from tiltmeter.report.wording import moment

#: Strips of pairs that are drawn; those with something clear come first.
MOST_STRIPS = 12


def strips(found: Findings, axis: StretchedAxis, frame: Frame, y: float) -> tuple[list[str], float]:
    """One strip for each measure (two groups) or for each pair of groups; and where the last one ends."""
    rows: list[tuple[str, Difference]] = []
    if found.two:
        title = "Who is better off, by each measure"
        rows = [(_strip_name(row), row.judged[0]) for row in found.rows.values() if row.judged and row.judged[0].judged]
    else:
        title = f"{found.headline.term.title}: who is better off in each pair"
        judged = [one for one in found.headline.judged if one.judged]
        judged.sort(key=lambda one: not one.sign.any())
        rows = [(_pair_name(one), one) for one in judged[:MOST_STRIPS]]
    if not rows:
        return [], y - 20
    room = frame.width - frame.left
    start = frame.left if BOLD * len(title) <= room else 2.0  # a long title begins at the edge of a narrow picture
    parts = [svg.text(start, y - 6, short(title, frame.width - start), "sh")]
    for name, one in rows:
        above = frame is NARROW and not found.two  # names of pairs need more room than those of measures
        if above:
            parts.append(svg.text(frame.left, y + 10, short(name, frame.room + frame.right), "sl"))
            y += 14
        else:
            parts.append(svg.text(frame.left - 5, y + 12, short(name, frame.left - 5, PLAIN), "sl", "end"))
        parts += _strip(found, one, axis, frame, y)
        y += 21
    return parts, y


def _pair_name(one: Difference) -> str:
    first, second = (group_name(group) if group != ALL else "all" for group in one.pair)
    return f"{first} / {second}"


def _strip_name(row: Row) -> str:
    known = {"tpr": "TPR", "fpr": "FPR", "positive_rate": "Selection", "error": "Error", "squared_error": "Sq. error"}
    return known.get(row.term.curve, row.term.title)


def _strip(found: Findings, one: Difference, axis: StretchedAxis, frame: Frame, y: float) -> list[str]:
    parts: list[str] = []
    edges = [stretch.first for stretch in one.stretches] + [found.last]
    neither = found.rows[one.curve].term.better == "neither"
    for stretch, end in zip(one.stretches, edges[1:], strict=True):
        x0, x1 = (frame.left + float(axis.place(time)) * frame.room for time in (stretch.first, end))
        if stretch is one.stretches[-1]:
            x1 = frame.left + frame.room
        kind, words = _who(found, stretch.leader, neither)
        parts.append(svg.box(x0, y, max(x1 - x0, 1.5), 16, f"st {kind}"))
        fitting = next((text for text in words if 6.4 * len(text) + 8 < x1 - x0), None)
        if fitting:
            parts.append(svg.text((x0 + x1) / 2, y + 12, fitting, f"stx {kind}", "middle"))
    return parts


def _who(found: Findings, leader: Hashable, neither: bool) -> tuple[str, list[str]]:
    if leader == NOBODY:
        return "none", ["not clear"]
    if leader == ALL:
        return "rest", [ALL, "all"]
    name, kind = group_name(leader), found.colours[found.groups.index(leader)]
    return kind, [f"{name} {'more' if neither else 'better off'}", name]


def strips_figure(found: Findings) -> str:
    """The strips as a picture of its own, for a wide page and for a narrow one."""
    assert found.headline.course is not None
    times = found.headline.course.coords["time"].values.astype(float)
    pictures = []
    for frame, kind in ((WIDE, "wide"), (NARROW, "narrow")):
        axis = stretched_axis(times)
        parts, low = strips(found, axis, frame, 24.0)
        if not parts:
            return ""
        for time in axis.ticks(frame.room):
            x = frame.left + float(axis.place(time)) * frame.room
            parts.append(svg.text(x, low + 14, moment(time), "tick", "middle"))
        pictures.append(svg.picture(frame.width, low + 22, parts, "Who is better off when", "", kind))
    return figure("Grey: no difference is clear.", *pictures, strong="Who was clearly better off when.", middle=True)
