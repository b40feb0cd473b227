"""`tiltmeter scorecard`: interventions against the plain training, judged by their whole trajectories."""

from __future__ import annotations

import json as machine
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich import box
from rich.table import Table

from tiltmeter.cli.run_input import read_trajectories
from tiltmeter.cli.show import draw
from tiltmeter.cli.terminal import Json, Level, Save, print_table
from tiltmeter.leaders.scorecard.score import Score
from tiltmeter.leaders.scorecard.scorecard import Scorecard
from tiltmeter.leaders.scorecard.scorecard import scorecard as card_of
from tiltmeter.leaders.scorecard.selections import BestMean, BestWorst, Last
from tiltmeter.record import Trajectory

SELECTIONS = {"last": Last(), "best-mean": BestMean(), "best-worst": BestWorst()}


def scorecard(
    *runs: Path,
    curve: str = "loss",
    select: Literal["last", "best-mean", "best-worst"] = "last",
    picture: Literal["plane", "paid", "areas", "pulls"] = "plane",
    level: Level = 0.05,
    save: Save = (),
    json: Json = False,
) -> None:
    """Compare interventions with the plain training, the first run: what changed, at what cost, and for whom.

    Parameters
    ----------
    runs
        Run directories, the baseline first.
    curve
        The curve in which they are judged; lower must be better.
    select
        The evaluation at which each run is judged. The best ones are chosen on the same points, so their numbers are
        optimistic.
    picture
        What `--save` draws: the plane of mean and worst group, who paid, areas over training, or pulls over time.
    """
    loaded = read_trajectories(runs)
    if len(loaded) < 2:
        raise ValueError(f"A scorecard needs at least two runs, the baseline first. Found {len(loaded)}.")
    card = card_of(loaded, curve, select=SELECTIONS[select], level=level)
    if save:
        _draw(picture, card, loaded, curve, save)
    if json:
        print(machine.dumps(card.to_json(), indent=2, allow_nan=False))
        return
    print(card)
    header = (
        "run",
        "worst group",
        f"worst {curve}",
        "over training",
        "gap over training",
        "leader changes",
        "cost",
        "pays",
    )
    grid = Table(*header, box=box.SIMPLE_HEAD)
    for row in card.rows:
        grid.add_row(*_cells(row))
    print_table(grid)


def _draw(picture: str, card: Scorecard, runs: dict[str, Trajectory], curve: str, save: tuple[Path, ...]) -> None:
    from tiltmeter import plot

    chart: Any
    if picture in ("paid", "areas"):
        chart = plot.who_paid(card) if picture == "paid" else plot.areas(card)
    else:
        chart = plot.pulls(runs, curve) if picture == "pulls" else plot.loss_plane(runs, curve)
    draw(chart, save)


def _cells(row: Score) -> list[str]:
    paid = ", ".join(str(one.group) for one in row.paid) or "nobody"
    cost = f"{row.cost:.3g}x" if np.isfinite(row.cost) else "not known"
    levels = " (levels down)" if row.levels_down else ""
    return [
        row.name + levels,
        row.worst_named.removeprefix("worst group "),
        str(row.worst),
        str(row.worst_area),
        str(row.gap_area),
        str(row.crossings),
        cost,
        paid,
    ]
