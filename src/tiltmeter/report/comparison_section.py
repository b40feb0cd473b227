"""Runs compared: changes of the first, a scorecard of whole trainings, and one row for every other run."""

from __future__ import annotations

import numpy as np

from tiltmeter.fairness.estimate import UNKNOWN
from tiltmeter.leaders.scorecard.score import Score, SeedMean
from tiltmeter.leaders.scorecard.scorecard import Scorecard, scorecard
from tiltmeter.plot.theme import group_name
from tiltmeter.report import svg
from tiltmeter.report.axes import Axes, Frame, StretchedAxis, short, stretched_axis
from tiltmeter.report.changes import change_table, comparable
from tiltmeter.report.findings import Findings
from tiltmeter.report.html import Cell, card_table, escape, figure, paragraph, section
from tiltmeter.report.wording import listed, number, when
from tiltmeter.shown_text import minus, percent

PANEL = Frame(320.0, 46.0, 90.0, 8.0, 150.0)


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
    told = row.term.row(values[worst], values[best])
    size = row.term.size(abs(float(values[worst] - values[best])))
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
    return (row.term.limits(turned),)


def _shown(run: Findings, curve: str) -> str:
    row = run.rows[curve]
    if not row.known:
        return "not judged"
    basis = "as calculated, " if run.judged.basis in ("values", "exact") else ""
    if not row.clear:
        return f"{basis}not clear"
    first, second = (group_name(group) for group in row.clear[0][0])
    return f"{basis}{first} above {second}"


def _chart(runs: list[Findings], curve: str) -> str:
    fit = [run for run in runs if curve in run.rows and run.clock == runs[0].clock and len(run.groups) <= 5]
    same = [run for run in fit if run.groups == runs[0].groups and run.rows[curve].course is not None]
    if len(same) < 2 or len(same) > 5 or not any(run.several for run in same):
        return ""
    courses = [run.rows[curve].course for run in same]
    ends = [one.values[np.isfinite(one.values)] for one in courses if one is not None]
    low, high = min(0.0, min(float(end.min()) for end in ends)), max(float(end.max()) for end in ends) or 1.0
    times = [one.coords["time"].values.astype(float) for one in courses if one is not None]
    longest = max(times, key=lambda t: float(t[-1]))
    # A nowcast begins where its run stands.
    late = any(float(one[0]) < float(longest[0]) for one in times)
    axis = stretched_axis(np.unique(np.concatenate(times)) if late else longest)
    term = same[0].rows[curve].term
    panels = "".join(f"<div><h3>{escape(run.name)}</h3>{_panel(run, curve, axis, (low, high))}</div>" for run in same)
    caption = f"by {runs[0].clock}, one panel for each run on the same scales; the numbers are values at the end."
    return figure(caption, f'<div class="mult">{panels}</div>', strong=f"{term.title} of each group")


def _panel(run: Findings, curve: str, axis: StretchedAxis, span: tuple[float, float]) -> str:
    """One run: a line for each group, with its name and last value at the end."""
    row, (low, high) = run.rows[curve], span
    assert row.course is not None
    axes = Axes(PANEL, axis, low, high)
    parts = axes.levels([(level, row.term.told(level, 0)) for level in (low, (low + high) / 2, high)])
    parts += axes.moments()
    x = axes.x(row.course.coords["time"].values.astype(float))
    for place, kind in enumerate(run.colours):
        parts.append(svg.path(x, axes.y(row.course.values[:, place]), f"line thin {kind}"))
    ends = row.course.values[-1]
    known = [place for place in range(len(run.groups)) if np.isfinite(ends[place])]
    heights = svg.spread([float(axes.y(ends[place])) for place in known], 13.0, 8, 158)
    labels = [f"{row.term.told(float(ends[place]), 0)} {run.names[place]}" for place in known]
    for place, height, label in zip(known, heights, labels, strict=True):
        parts.append(svg.text(float(x[-1]) + 5, height + 4, short(label, 85), f"lab {run.colours[place]}"))
    return svg.picture(320, 182, parts, f"{row.term.title} of each group in {run.name}", ", ".join(labels), "")


def score_of(runs: list[Findings]) -> Scorecard | str:
    """The scorecard by loss, the first run as baseline; or the reason why there is none."""
    fit = [one for one in runs if "loss" in one.rows and one.clock == runs[0].clock and one.groups == runs[0].groups]
    if len(fit) < 2 or fit[0] is not runs[0]:
        return ""
    try:
        return scorecard({one.name: one.run for one in fit}, "loss", level=runs[0].judged.level)
    except (ValueError, KeyError) as error:
        return str(error)


def score_table(runs: list[Findings]) -> str:
    """One row for each run: worst group, both means over training, changes of leader, cost, and who pays."""
    card = score_of(runs)
    if isinstance(card, str):
        return paragraph(card, "note")
    head = [
        "Run, by loss",
        "Worst group at the end",
        "Worst group, over training",
        "Gap, over training",
        "Lead changes",
        "Cost",
        "Who pays",
    ]
    rows = [_score_row(row, card) for row in card.rows]
    return card_table(head, rows, f"Whole trainings against {card.baseline.name}. {card.basis}")


def _score_row(row: Score, card: Scorecard) -> list[Cell]:
    first = row is card.baseline
    if row.diverged:
        return [Cell(row.name, ("diverged",), head=True), *(Cell("") for _ in range(6))]
    floor = (f"equal groups would give {number(row.noise_floor)}",) if row.noise_floor > 0 else ()
    changes = [f"{count} {word}" for count, word in ((row.created, "created"), (row.removed, "removed")) if count]
    paid = [f"{group_name(one.group)} (+{_told(one.change)})" for one in row.paid]
    name = Cell(row.name, ("baseline",) if first else (), head=True)
    if row.levels_down:
        chip = '<b class="chip down">levels down</b>'
        name = Cell(row.name, ("the gap is smaller, but the worst group is worse off",), head=True, html=f" {chip}")
    return [
        name,
        Cell(_told(row.worst), (row.worst_named.removeprefix("worst group "), *_change(row.worst_change, first))),
        Cell(_told(row.worst_area), _change(row.worst_area_change, first)),
        Cell(_told(row.gap_area), (*_change(row.gap_area_change, first), *floor)),
        Cell(f"{row.crossings}", tuple(changes)),
        Cell(f"{row.cost:.3g}×" if np.isfinite(row.cost) else "not known"),
        Cell("" if first else listed(paid, 3) or "nobody"),
    ]


def _told(one: SeedMean) -> str:
    return f"{number(one.value)}{_error(one)}"


def _error(one: SeedMean) -> str:
    if not np.isfinite(one.error) or one.error <= 0:
        return ""
    return f" ± {one.error:.3f}" if one.error >= 0.0005 else " ± <0.001"


def _change(one: SeedMean, first: bool) -> tuple[str, ...]:
    if first or not np.isfinite(one.value):
        return ()
    sign = "+" if one.value > 0 else ""
    return (f"{sign}{minus(one.value, 3)}{_error(one)} against the baseline",)
