"""`tiltmeter compare`: several runs in one table, by the numbers of the scorecard."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.table import Column, Table

from tiltmeter.cli.run_input import read_trajectories
from tiltmeter.cli.terminal import Json, Level, plain_console, print_json, print_table
from tiltmeter.leaders.headline import between_at, term
from tiltmeter.leaders.leaders import leaders
from tiltmeter.leaders.scorecard.score import Score
from tiltmeter.leaders.scorecard.scorecard import scorecard
from tiltmeter.names import NOBODY
from tiltmeter.shown_text import group_name

#: The columns of the table.
HEADER = ("run", "changes", "leads last", "worst group", "last gap", "gap over training")


def compare(*runs: Path, curve: str | None = None, level: Level = 0.05, json: Json = False) -> None:
    """Compare runs: who leads, when that changes, the worst group, and the gap over training.

    Parameters
    ----------
    runs
        Run directories.
    curve
        The curve in which they are compared (default: what the question of the data asks for; the table is by loss).
    """
    loaded = read_trajectories(runs)
    card = scorecard(loaded, curve or "loss", level=level)
    if json:
        print_json(card.to_json())
        return
    for row in card.rows:
        line = row.leaders.headline.line if curve is not None else leaders(loaded[row.name], level=level).headline.line
        print(f"{row.name}: {line}")
    rows = [_cells(row) for row in card.rows]
    longest = [max(len(word) for cell in cells for word in cell.split() or [""]) for cells in zip(*rows, strict=True)]
    heads = [
        Column(head, overflow="fold", min_width=min(width, 24)) for head, width in zip(HEADER, longest, strict=True)
    ]
    grid = Table(*heads, title=f"By {term(curve or 'loss')}", title_justify="left", box=box.SIMPLE_HEAD)
    grid.pad_edge, grid.collapse_padding = False, True
    for cells in rows:
        grid.add_row(*cells)
    if plain_console(1000).measure(grid).maximum > plain_console().width:
        heads[-1].max_width = 8  # "0.0292 ± 0.0395" on two lines
    print_table(grid)


def _cells(row: Score) -> list[str]:
    judged = row.leaders
    changes = ", ".join(between_at(judged.clock, one.low, one.high) for one in judged.changes)
    worst = f"{row.worst_named.removeprefix('worst group ')} ({row.worst})"
    leader = "not clear" if judged.last == NOBODY else group_name(judged.last)
    return [row.name, changes or "none", leader, worst, f"{row.gap:.4f}", str(row.gap_area)]
