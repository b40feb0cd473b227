"""`tiltmeter compare`: compare runs."""

from __future__ import annotations

import json as machine
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from tiltmeter.analysis.comparison import Compared, Comparison, comparison
from tiltmeter.cli.flags import Json, Level
from tiltmeter.cli.terminal import print_table
from tiltmeter.names import NOBODY
from tiltmeter.record import Trajectory, load
from tiltmeter.record.labelled import label_to_json
from tiltmeter.visible_text import group_name

#: The columns of the table.
HEADER = ("run", "first leader", "lead changes at", "last leader", "worst group", "last gap", "area under the gap")


def compare(*runs: Path, curve: str = "loss", level: Level = 0.05, json: Json = False) -> None:
    """Compare runs: leaders, crossings, worst group, area under the gap.

    Parameters
    ----------
    runs
        Run directories.
    curve
        The curve in which they are compared.
    """
    loaded = []
    for run in runs:
        found = load(run)
        if not isinstance(found, Trajectory):
            raise ValueError(f"{run} holds a dataset, not a run over time.")
        loaded.append(found)
    result = comparison(loaded, [str(run) for run in runs], curve, level)
    if json:
        rows: list[dict[str, Any]] = [
            {
                "run": row.name,
                "first_leader": label_to_json(row.first_leader),
                "last_leader": label_to_json(row.last_leader),
                "crossings": [crossing.time for crossing in row.crossings],
                "worst_group": label_to_json(row.worst_group),
                "could_be_worst": [label_to_json(group) for group in row.could_be_worst],
                "worst": row.worst,
                "mean": row.mean,
                "gap": row.gap,
                "area": row.area,
            }
            for row in result.rows
        ]
        print(machine.dumps({"curve": curve, "runs": rows}, indent=2, allow_nan=False))
        return
    print(result)
    grid = Table(*HEADER, box=box.SIMPLE_HEAD)
    for cells in _rows(result):
        grid.add_row(*cells)
    print_table(grid)


def _rows(result: Comparison) -> list[list[str]]:
    return [
        [
            row.name,
            _who(row.first_leader),
            ", ".join(f"{crossing.time:.4g}" for crossing in row.crossings) or "none",
            _who(row.last_leader),
            _worst(row),
            f"{row.gap:.4f}",
            f"{row.area:.4f}",
        ]
        for row in result.rows
    ]


def _worst(row: Compared) -> str:
    """The group that is shown to be the worst, or those that could be; with the worst value seen."""
    could = f"could be {', '.join(map(group_name, row.could_be_worst))}" if row.could_be_worst else "not judged"
    return f"{could if row.worst_group == NOBODY else group_name(row.worst_group)} ({row.worst:.4f})"


def _who(leader: object) -> str:
    return "not shown" if leader == NOBODY else group_name(leader)
