"""Tables: all measures at the last evaluation; measures by groups for two groups, groups by measures for more."""

from __future__ import annotations

import numpy as np

from tiltmeter.fairness.estimate import UNKNOWN, Estimate, wilson
from tiltmeter.leaders.points import FEWEST
from tiltmeter.plot.theme import group_name
from tiltmeter.report import svg
from tiltmeter.report.axes import stretched_axis
from tiltmeter.report.findings import Findings, Row
from tiltmeter.report.html import Cell, card_table, escape
from tiltmeter.report.small_multiples import after_start
from tiltmeter.report.wording import between, points
from tiltmeter.shown_text import minus, percent

#: A group with fewer points than this share of all is marked.
TINY = 0.02
#: More columns of numbers than this do not fit on paper.
COLUMNS = 12


def measure_table(found: Findings) -> str:
    """The table of the page."""
    return _two(found) if found.two else _many(found)


def _two(found: Findings) -> str:
    a, b = found.names
    head = ["Measure", a, b, f"Difference, {a} minus {b}", "Clear?", *(["Over training"] if found.several else [])]
    rows = []
    if found.evaluation is not None:
        rows.append(_base_rates(found))
    rows += [_measure(found, row) for row in [*found.rows.values(), *found.extra.values()]]
    if found.calibration is not None and len(found.calibration.groups) == 2:
        rows.append(_calibration(found))
    return card_table(head, [row[: len(head)] for row in rows], _caption(found))


def _caption(found: Findings) -> str:
    level = f"{100 * found.judged.level:g} %"
    text = "Small numbers below a value are its own 95 % limits."
    if found.scope == "exact":
        return "Exact values, or values without known errors."
    last = " of the last evaluation" if found.several else ""
    return (
        f"{text} Limits of differences hold together: those of the question, those of the other rates and loss, and "
        f"those of all other measures{last}, these at {level}. A difference is clear where its limits leave out 0."
    )


def _base_rates(found: Findings) -> list[Cell]:
    assert found.evaluation is not None
    counts = found.evaluation.counts
    cells = [Cell("Positives", ("base rate, in the data",), head=True)]
    rates = []
    for negatives, positives in counts:
        one = wilson(positives / (negatives + positives), negatives + positives)
        rates.append(one)
        cells.append(Cell(percent(one.value), (between(one), f"{positives:,} of {negatives + positives:,}")))
    cells.append(Cell(points(rates[0].value - rates[1].value)))
    return [*cells, Cell("", ("a fact about the data",)), Cell("")]


def _measure(found: Findings, row: Row) -> list[Cell]:
    title = Cell(row.term.title, (row.term.meaning,), head=True)
    told = row.term.row(*(one.value for one in row.values))
    values = [
        Cell(text, tuple(_details(row, one, count)))
        for text, one, count in zip(told, row.values, row.counts, strict=True)
    ]
    return [
        title,
        *values,
        _difference(row, row.differences[0] if row.differences else UNKNOWN),
        _verdict(row),
        Cell("", html=_spark(found, row)),
    ]


def _details(row: Row, one: Estimate, count: tuple[int, int] | None) -> list[str]:
    parts = []
    if one.known:
        parts.append(row.term.limits(one))
    elif row.course is None:
        parts.append("too few to say")
    if count is not None:
        parts.append(f"{count[0]:,} of {count[1]:,}" if count[0] >= 0 else f"of {count[1]:,}")
    return parts


def _difference(row: Row, one: Estimate) -> Cell:
    if not np.isfinite(one.value):
        return Cell("", ("not judged",))
    exact = one.low == one.high or not one.known
    return Cell(row.term.size(one.value), () if exact else (row.term.limits(one),))


def _verdict(row: Row) -> Cell:
    if not row.known:
        return Cell("", ("not judged",))
    if not row.clear:
        return Cell("", html='<b class="tag none">not clear</b>')
    more = group_name(row.clear[0][0][0])
    return Cell("", html=f'<b class="tag real">clear</b><span>higher for {escape(more)}</span>')


def _spark(found: Findings, row: Row) -> str:
    """The course after start-up, and where the difference went since half-way."""
    if row.course is None or row.course.sizes["time"] < 4:
        return '<span class="na">last evaluation only</span>' if row.course is None else ""
    times, values = row.course.coords["time"].values.astype(float), row.course.values
    later = after_start(times, found.clock)
    inside = values[later]
    if later.sum() < 2 or not np.isfinite(inside).any():
        return ""
    low, high = float(np.nanmin(inside)), float(np.nanmax(inside))
    span = (high - low) or 1.0
    x = 4 + stretched_axis(times[later]).place(times[later]) * 112
    parts = []
    for group, kind in enumerate(found.colours):
        y = 4 + (high - inside[:, group]) / span * 26
        parts.append(svg.path(x, y, f"line {kind}"))
        if np.isfinite(y[-1]):
            parts.append(svg.mark(x[-1], y[-1], f"dot {kind}", square=group % 2 == 1, size=2.4))
    drawn = svg.picture(120, 34, parts, f"{row.term.title} over training", "", "spark")
    return f"{drawn}<span>{_trend(row)}</span>" if found.two else drawn


def _trend(row: Row) -> str:
    """Whether the difference grew since half-way, by more than a quarter of its limits."""
    if not row.judged or not row.judged[0].judged:
        return ""
    one = row.judged[0]
    half = int(np.argmin(np.abs(one.times - one.times[-1] / 2)))
    change = abs(one.gap[-1]) - abs(one.gap[half])
    width = (one.upper[-1] - one.lower[-1]) / 2
    if not np.isfinite(change):
        return ""
    if abs(change) <= 0.5 * width:
        return "→ difference steady since half-way"
    return "↗ difference grew since half-way" if change > 0 else "↘ difference shrank since half-way"


def _calibration(found: Findings) -> list[Cell]:
    assert found.calibration is not None
    cells = [Cell("Calibration error", ("mean distance of probability and share; lower is better",), head=True)]
    for one in found.calibration.groups:
        cells.append(Cell(points(one.error), (f"chance gives up to {points(one.limit)}", f"{one.points:,} points")))
    wrong = [group_name(one.group) for one in found.calibration.groups if one.shown]
    text = f"clearly wrong: {', '.join(wrong)}" if wrong else "none is clearly wrong"
    return [*cells, Cell(""), Cell("", (text,)), Cell("", ("last evaluation only",))]


def _many(found: Findings) -> str:
    """One row for each group, the largest first: sizes, rates with limits drawn, and from whom it clearly differs."""
    row = found.headline
    sizes = None if found.evaluation is None else found.evaluation.counts.sum(1)
    order = range(len(found.groups)) if sizes is None else np.argsort(-sizes, kind="stable")
    others = [one for one in found.rows.values() if one is not row][:4]
    head = ["Group"]
    if sizes is not None:
        head += ["Held out", "Positives"]
    head += [row.term.title, f"{row.term.title}: clearly differs from", *(one.term.title for one in others)]
    rows = [_group(found, int(place), sizes, others) for place in order]
    caption = f"Groups by size. {_caption(found)} {row.term.title}: {row.term.meaning}."
    if sizes is not None:
        caption += (
            f" † under {percent(TINY, 0)} of the points. With fewer than {FEWEST} counted points nothing is said."
        )
    return card_table(head, rows, caption)


def _group(found: Findings, place: int, sizes: np.ndarray | None, others: list[Row]) -> list[Cell]:
    row = found.headline
    tiny = sizes is not None and sizes[place] < TINY * sizes.sum()
    cells = [Cell(f"{found.names[place]}{' †' if tiny else ''}", head=True)]
    if sizes is not None and found.evaluation is not None:
        cells.append(Cell(f"{sizes[place]:,}", (f"{percent(sizes[place] / sizes.sum(), 1)} of all",)))
        cells.append(
            Cell(f"{found.evaluation.counts[place, 1]:,}", (percent(float(found.evaluation.rates().base_rate[place])),))
        )
    one = row.values[place]
    if not found.enough(place):
        cells += [Cell("", ("too few to say",)), Cell("", ("nothing can be said",))]
    else:
        shown = row.term.share and one.known
        drawn = _interval(one, found.colours[place]) if shown else ""
        text = f"{row.term.told(one.value)} ({between(one)})" if shown else row.term.told(one.value)
        cells += [Cell("", html=f"{drawn}<span>{escape(text)}</span>"), _against(found, row, place)]
    for other in others:
        value, count = other.values[place], other.counts[place]
        if count is not None and count[1] < FEWEST:
            cells.append(Cell("", ("too few",)))
        else:
            limits = (between(value),) if other.term.share and value.known else ()
            cells.append(Cell(other.term.told(value.value), limits))
    return cells


def _against(found: Findings, row: Row, place: int) -> Cell:
    """The groups from which a group clearly differs, the largest difference first."""
    group = found.groups[place]
    clear = [(pair, gap) for pair, gap in row.clear if group in pair]
    if not any(group in pair and one.known for pair, one in zip(row.pairs, row.differences, strict=True)):
        return Cell("", ("not judged",))
    if not clear:
        return Cell("", html='<b class="tag none">not clear</b>')
    lines = []
    for (first, second), gap in clear[:3]:
        other = second if first == group else first
        signed = gap if first == group else gap.times(-1.0)
        sign = "+" if signed.value > 0 else ""
        limits = "" if signed.low == signed.high else f" ({row.term.limits(signed)})"
        lines.append(f"{group_name(other)}: {sign}{row.term.size(signed.value)}{limits}")
    more = f"and {len(clear) - 3} more" if len(clear) > 3 else ""
    told = "".join(f"<span>{escape(line)}</span>" for line in (*lines, more) if line)
    return Cell("", html=f'<b class="tag real">clear</b>{told}')


def _interval(one: Estimate, kind: str) -> str:
    """A number from 0 to 100 % with its limits."""
    x = [4 + 132 * value for value in (one.low, one.value, one.high)]
    parts = [
        svg.line(4, 9, 136, 9, "grid"),
        svg.line(x[0], 9, x[2], 9, f"ci {kind}"),
        svg.mark(x[1], 9, f"dot {kind}", size=4),
    ]
    return svg.picture(140, 18, parts, "value with its limits, from 0 to 100 %", "", "dc")


def curve_table(found: Findings, most: int = 14) -> str:
    """The curves as numbers at some evaluations; of many groups one table for each curve, so that paper is wide
    enough."""
    rows = [row for row in found.rows.values() if row.course is not None]
    if len(rows) * len(found.groups) <= COLUMNS:
        return _numbers(found, rows, most)
    return "".join(_numbers(found, [row], most, row.term.curve.replace("_", " ")) for row in rows)


def _numbers(found: Findings, rows: list[Row], most: int, caption: str = "") -> str:
    times = found.headline.course.coords["time"].values  # type: ignore[union-attr]
    chosen = np.unique(np.linspace(0, len(times) - 1, min(most, len(times))).round().astype(int))
    names = [name if caption else f"{row.term.curve.replace('_', ' ')}, {name}" for row in rows for name in found.names]
    head = [found.clock, *names]
    body = []
    for evaluation in chosen:
        cells = [Cell(f"{times[evaluation]:g}", head=True)]
        for row in rows:
            assert row.course is not None
            same = row.course.sel(time=times[evaluation], method="nearest").values
            cells += [Cell(minus(float(value), 4) if np.isfinite(value) else "no data") for value in same]
        body.append(cells)
    return card_table(head, body, caption, stack=False)
