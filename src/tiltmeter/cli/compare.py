"""`tiltmeter compare`: compare runs."""

from __future__ import annotations

import json as machine
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from tiltmeter.analysis.comparison import comparison
from tiltmeter.cli.flags import Json, Level
from tiltmeter.cli.terminal import print_table
from tiltmeter.record import Trajectory, load
from tiltmeter.record.labelled import label_to_json
from tiltmeter.report.facts import compared


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
    shown = compared(result)
    grid = Table(*shown.header, box=box.SIMPLE_HEAD)
    for cells in shown.rows:
        grid.add_row(*cells)
    print_table(grid)
