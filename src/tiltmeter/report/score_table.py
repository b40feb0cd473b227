"""The scorecard on the page: runs against the first one, judged by their whole training."""

from __future__ import annotations

import numpy as np

from tiltmeter.leaders.scorecard.score import Score, SeedMean
from tiltmeter.leaders.scorecard.scorecard import Scorecard, scorecard
from tiltmeter.plot.theme import group_name
from tiltmeter.report.findings import Findings
from tiltmeter.report.html import Cell, card_table, paragraph
from tiltmeter.report.wording import listed, number
from tiltmeter.shown_text import minus


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
    rows = [_row(row, card) for row in card.rows]
    return card_table(head, rows, f"Whole trainings against {card.baseline.name}. {card.basis}")


def _row(row: Score, card: Scorecard) -> list[Cell]:
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
