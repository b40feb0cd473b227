"""`tiltmeter compare`: several runs in one table, by the numbers of the scorecard."""

from __future__ import annotations

import json as machine
from pathlib import Path

from rich import box
from rich.table import Table

from tiltmeter.cli.run_input import read_trajectories
from tiltmeter.cli.terminal import Json, Level, print_table
from tiltmeter.leaders.headline import between_at
from tiltmeter.leaders.scorecard.score import Score
from tiltmeter.leaders.scorecard.scorecard import scorecard
from tiltmeter.names import NOBODY
from tiltmeter.shown_text import group_name

#: The columns of the table.
HEADER = ("run", "leads first", "lead changes", "leads last", "worst group", "last gap", "gap over training")


def compare(*runs: Path, curve: str = "loss", level: Level = 0.05, json: Json = False) -> None:
    """Compare runs: who leads, when that changes, the worst group, and the gap over training.

    Parameters
    ----------
    runs
        Run directories.
    curve
        The curve in which they are compared.
    """
    card = scorecard(read_trajectories(runs), curve, level=level)
    if json:
        print(machine.dumps(card.to_json(), indent=2, allow_nan=False))
        return
    for row in card.rows:
        print(f"{row.name}: {row.leaders.headline.claim}")
    grid = Table(*HEADER, box=box.SIMPLE_HEAD)
    for row in card.rows:
        grid.add_row(*_cells(row))
    print_table(grid)


def _cells(row: Score) -> list[str]:
    judged = row.leaders
    changes = ", ".join(between_at(judged.clock, one.low, one.high) for one in judged.changes)
    worst = f"{row.worst_named.removeprefix('worst group ')} ({row.worst})"
    return [
        *(row.name, _who(judged.first), changes or "none", _who(judged.last)),
        *(worst, f"{row.gap:.4f}", str(row.gap_area)),
    ]


def _who(leader: object) -> str:
    return "not clear" if leader == NOBODY else group_name(leader)
