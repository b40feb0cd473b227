"""`tiltmeter scorecard`: interventions against the plain training, judged by their whole trajectories."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

from tiltmeter.cli.run_input import read_trajectories
from tiltmeter.cli.show import draw
from tiltmeter.cli.terminal import Json, Level, Save, print_json, print_rows
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
        print_json(card.to_json())
        return
    print(card)
    heads = ["run", "worst group", f"worst {curve}", "over training", "gap over training"]
    print_rows([*heads, "leader changes", "cost", "pays"], map(_cells, card.rows))


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
    name = f"{row.name} (levels down)" if row.levels_down else row.name
    means = map(str, (row.worst, row.worst_area, row.gap_area, row.crossings))
    return [name, row.worst_named.removeprefix("worst group "), *means, cost, paid]
