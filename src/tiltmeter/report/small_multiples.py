"""Small multiples: every other curve of the page as a small chart, fitted to what happens after start-up."""

from __future__ import annotations

import numpy as np

from tiltmeter.report import svg
from tiltmeter.report.findings import Findings, Row
from tiltmeter.report.stretched_axis import StretchedAxis, stretched_axis
from tiltmeter.report.wording import moment, number, percents
from tiltmeter.shown_text import percent

WIDTH, HEIGHT, LEFT, TOP = 320.0, 150.0, 42.0, 8.0


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
    axis = stretched_axis(times)
    drawn = [place for place in range(len(found.groups)) if found.enough(place)] or list(range(len(found.groups)))
    later = values[after_start(times, found.clock)][:, drawn]
    later = later if np.isfinite(later).any() else values
    low, high = float(np.nanmin(later)), float(np.nanmax(later))
    margin = 0.08 * (high - low) or 0.5 * abs(high) or 0.5
    low, high = (max(0.0, low - margin) if low >= 0 else low - margin), high + margin
    high = min(high, 1.0) if row.term.share else high
    parts = _frame(axis, row, low, high)
    for place, kind in sorted(enumerate(found.colours), key=lambda one: one[1] != "rest"):
        if place not in drawn:
            continue
        x = LEFT + axis.place(times) * (WIDTH - LEFT - 10)
        inside = np.where((values[:, place] <= high) & (values[:, place] >= low), values[:, place], np.nan)
        y = TOP + (high - inside) / (high - low) * HEIGHT
        parts.append(svg.path(x, y, f"line thin {kind}"))
        if row.term.curve == "error" and found.evaluation is not None and kind != "rest":
            constant = float(found.evaluation.rates().constant_error[place])
            if low <= constant <= high:
                at = TOP + (high - constant) / (high - low) * HEIGHT
                parts.append(svg.line(LEFT, at, WIDTH - 10, at, f"ref {kind}"))
    return _left_out(row, values, high), svg.picture(
        WIDTH, HEIGHT + TOP + 22, parts, f"{row.term.title} of every group by {found.clock}", _ends(found, row), ""
    )


def _frame(axis: StretchedAxis, row: Row, low: float, high: float) -> list[str]:
    parts = []
    digits = 0 if high - low >= 0.04 else 1
    for part in (0.0, 0.5, 1.0):
        y, value = TOP + part * HEIGHT, high - part * (high - low)
        parts.append(svg.line(LEFT, y, WIDTH - 10, y, "grid"))
        words = percent(value, digits) if row.term.share else number(value)
        parts.append(svg.text(LEFT - 4, y + 4, words, "tick", "end"))
    for time in axis.ticks(WIDTH - LEFT - 10, 60.0):
        x = LEFT + float(axis.place(time)) * (WIDTH - LEFT - 10)
        parts.append(svg.text(x, TOP + HEIGHT + 16, moment(time), "tick", "middle" if x < WIDTH - 40 else "end"))
    return parts


def _left_out(row: Row, values: np.ndarray, high: float) -> str:
    """What the first evaluations show outside the frame, and what the faint lines are."""
    text = f"{row.term.meaning}."
    first = values[0]
    if np.isfinite(first).all() and (first > high).all():
        told = (
            percents(float(first.min()), float(first.max()))
            if row.term.share
            else [number(first.min()), number(first.max())]
        )
        text += f" At the first evaluation {told[0] if told[0] == told[1] else ' to '.join(told)}, above the frame."
    if row.term.curve == "error":
        text += " Dotted: the best constant answer."
    return text


def _ends(found: Findings, row: Row) -> str:
    told = [percent(one.value) if row.term.share else number(one.value) for one in row.values]
    return "At the end: " + ", ".join(f"{name} {value}" for name, value in zip(found.names, told, strict=True))
