"""Runs compared: changes of the first, a scorecard of whole trainings, and one row for every other run."""

from __future__ import annotations

import numpy as np

from tiltmeter.fairness.estimate import UNKNOWN
from tiltmeter.report import svg
from tiltmeter.report.changes import change_table, comparable
from tiltmeter.report.findings import Findings
from tiltmeter.report.html import Cell, card_table, figure, paragraph, section
from tiltmeter.report.score_table import score_table
from tiltmeter.report.stretched_axis import stretched_axis
from tiltmeter.report.wording import between, moment, number, percents, points, when
from tiltmeter.shown_text import percent


def comparison_section(main: Findings, others: tuple[Findings, ...], ahead: tuple[Findings, ...]) -> str:
    """Runs on the same points as changes of the first, all others as a table; the scorecard; the headline's curve."""
    same = comparable(main, others)
    rest = [main, *(one for one in (*others, *ahead) if one not in same)]
    parts = [change_table(main, others)] if same else []
    if len(rest) > 1:
        parts.append(_table(rest))
    if others:
        parts.append(score_table([main, *others]))
    if len(ahead) > 1:
        parts += [paragraph("What the forecasts say, the first one as baseline:"), score_table(list(ahead))]
    parts.append(_chart([main, *others, *ahead], main.headline.term.curve))
    return section("runs", "The runs compared", *parts)


def _table(runs: list[Findings]) -> str:
    curve, term = runs[0].headline.term.curve, runs[0].headline.term
    head = [
        "Run",
        "Up to",
        f"{term.title}, worst and best group",
        "Largest difference",
        "Error, all groups alike",
        "Clear",
    ]
    caption = f"{term.title}: {term.meaning}. Each run at its last evaluation; what is clear holds within a run."
    return card_table(head, [_row(run, curve) for run in runs], caption)


def _row(run: Findings, curve: str) -> list[Cell]:
    row = run.rows.get(curve)
    at = Cell(when(run.clock, run.last))
    if row is None:
        name = Cell(run.name, (run.run.origin.source,), head=True)
        return [name, at, Cell("", (f"no {curve}",)), Cell(""), Cell(""), Cell("")]
    values = np.array([one.value for one in row.values])
    worst, best = run.pair
    told = percents(values[worst], values[best]) if row.term.share else [number(values[i]) for i in (worst, best)]
    gap = abs(float(values[worst] - values[best]))
    size = points(gap) if row.term.share else number(gap)
    error = run.rows.get("error")
    mean = "" if error is None else percent(float(np.nanmean([one.value for one in error.values])), 1)
    return [
        Cell(run.name, (run.run.origin.source,), head=True),
        at,
        Cell(f"{told[0]}, {told[1]}", (f"{run.names[worst]}, {run.names[best]}",)),
        Cell(size, _limits(run, curve)),
        Cell(mean),
        Cell("", (_shown(run, curve),)),
    ]


def _limits(run: Findings, curve: str) -> tuple[str, ...]:
    row = run.rows[curve]
    one = row.differences[0] if row.differences else UNKNOWN
    if not run.two or not one.known or run.judged.basis in ("values", "exact"):
        return ()
    turned = one if one.value >= 0 else one.times(-1.0)
    return (between(turned) if row.term.share else f"{number(turned.low)} to {number(turned.high)}",)


def _shown(run: Findings, curve: str) -> str:
    row = run.rows[curve]
    if not row.known:
        return "not judged"
    basis = "as calculated, " if run.judged.basis in ("values", "exact") else ""
    if not row.clear:
        return f"{basis}not clear"
    first, second = (run.name_of(group) for group in row.clear[0][0])
    return f"{basis}{first} above {second}"


def _chart(runs: list[Findings], curve: str) -> str:
    fit = [run for run in runs if curve in run.rows and run.clock == runs[0].clock and len(run.groups) <= 5]
    same = [run for run in fit if run.groups == runs[0].groups and run.rows[curve].course is not None]
    if len(same) < 2 or len(same) > 5:
        return ""
    courses = [run.rows[curve].course for run in same]
    ends = [one.values[np.isfinite(one.values)] for one in courses if one is not None]
    low, high = min(0.0, min(float(end.min()) for end in ends)), max(float(end.max()) for end in ends) or 1.0
    times = [one.coords["time"].values.astype(float) for one in courses if one is not None]
    longest = max(times, key=lambda t: float(t[-1]))
    # A nowcast begins where its run stands.
    late = any(float(one[0]) < float(longest[0]) for one in times)
    axis = stretched_axis(np.unique(np.concatenate(times)) if late else longest)
    parts = []
    share = same[0].rows[curve].term.share
    for level in (low, (low + high) / 2, high):
        y = 12 + (high - level) / (high - low) * 220
        words = percent(level, 0) if share else number(level)
        parts += [svg.line(60, y, 560, y, "grid"), svg.text(55, y + 4, words, "tick", "end")]
    for time in axis.ticks(500.0):
        parts.append(svg.text(60 + float(axis.place(time)) * 500, 250, moment(time), "tick", "middle"))
    names: list[str] = []
    ends_at: list[tuple[float, float, str, str]] = []
    for place, (run, one) in enumerate(zip(same, courses, strict=True)):
        assert one is not None
        x = 60 + axis.place(one.coords["time"].values.astype(float)) * 500
        for group, kind in enumerate(run.colours):
            heights = 12 + (high - one.values[:, group]) / (high - low) * 220
            parts.append(svg.path(x, heights, f"line thin {kind}"))
            if np.isfinite(heights[-1]):
                ends_at.append((float(x[-1]), float(heights[-1]), str(place + 1), kind))
        names.append(f"{place + 1} {run.name}")
    for (x_end, _, words, kind), y in zip(ends_at, svg.spread([end[1] for end in ends_at], 13.0, 12, 240), strict=True):
        parts.append(svg.text(x_end + 6, y + 4, words, f"lab {kind}"))
    term = same[0].rows[curve].term
    caption = f"by {runs[0].clock}. Colours are groups, numbers at the ends are runs: {', '.join(names)}."
    drawn = svg.picture(600, 258, parts, f"{term.title} of all runs", f"Runs: {', '.join(names)}", "")
    return figure(caption, drawn, strong=term.title, middle=True)
