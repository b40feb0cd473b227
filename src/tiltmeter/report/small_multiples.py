"""Small multiples: every other curve of the page as a small chart, fitted to what happens after start-up."""

from __future__ import annotations

import numpy as np

from tiltmeter.report import svg
from tiltmeter.report.axes import Axes, Frame, stretched_axis
from tiltmeter.report.findings import Findings, Row

FRAME = Frame(320.0, 42.0, 10.0, 8.0, 150.0)


def small_multiples(found: Findings) -> list[tuple[str, str, str]]:
    """Title, what is left out, and picture of every curve except the headline's."""
    return [
        (row.term.title, *_chart(found, row))
        for row in found.rows.values()
        if row is not found.headline and row.course is not None and row.course.sizes["time"] > 1
    ]


def after_start(times: np.ndarray, clock: str) -> np.ndarray:
    """Evaluations after start-up, the first twenty-fifth of training; exact theory has none."""
    return np.asarray(times >= (0.04 * times[-1] if clock != "t" else times[0]))


def _chart(found: Findings, row: Row) -> tuple[str, str]:
    assert row.course is not None
    times, values = row.course.coords["time"].values.astype(float), row.course.values
    drawn = [place for place in range(len(found.groups)) if found.enough(place)] or list(range(len(found.groups)))
    later = values[after_start(times, found.clock)][:, drawn]
    later = later if np.isfinite(later).any() else values
    low, high = float(np.nanmin(later)), float(np.nanmax(later))
    margin = 0.08 * (high - low) or 0.5 * abs(high) or 0.5
    low, high = (max(0.0, low - margin) if low >= 0 else low - margin), high + margin
    high = min(high, 1.0) if row.term.share else high
    axes = Axes(FRAME, stretched_axis(times), low, high)
    digits = 0 if high - low >= 0.04 else 1
    levels = [(value, row.term.told(value, digits)) for value in (high, (low + high) / 2, low)]
    parts = [*axes.levels(levels), *axes.moments(60.0)]
    for place, kind in sorted(enumerate(found.colours), key=lambda one: one[1] != "rest"):
        if place not in drawn:
            continue
        inside = np.where((values[:, place] <= high) & (values[:, place] >= low), values[:, place], np.nan)
        parts.append(svg.path(axes.x(times), axes.y(inside), f"line thin {kind}"))
        if row.term.curve == "error" and found.evaluation is not None and kind != "rest":
            constant = float(found.evaluation.rates().constant_error[place])
            if low <= constant <= high:
                height, right = float(axes.y(constant)), FRAME.left + FRAME.room
                parts.append(svg.line(FRAME.left, height, right, height, f"ref {kind}"))
    title = f"{row.term.title} of every group by {found.clock}"
    picture = svg.picture(FRAME.width, FRAME.bottom + 22, parts, title, _ends(found, row), "")
    return _left_out(row, values, high), picture


def _left_out(row: Row, values: np.ndarray, high: float) -> str:
    """What the first evaluations show outside the frame, and what the faint lines are."""
    text = f"{row.term.meaning}."
    first = values[0]
    if np.isfinite(first).all() and (first > high).all():
        told = row.term.row(float(first.min()), float(first.max()))
        text += f" At the first evaluation {told[0] if told[0] == told[1] else ' to '.join(told)}, above the frame."
    if row.term.curve == "error":
        text += " Dotted: the best constant answer."
    return text


def _ends(found: Findings, row: Row) -> str:
    told = [row.term.told(one.value) for one in row.values]
    return "At the end: " + ", ".join(f"{name} {value}" for name, value in zip(found.names, told, strict=True))
