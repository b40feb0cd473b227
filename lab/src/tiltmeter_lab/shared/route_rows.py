"""Rows of the study of routes: every pair of groups in every run, with the score of everything that foretells it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import tiltmeter as tm
from tiltmeter_lab.catalogue import Runs
from tiltmeter_lab.shared.equal_progress import label as decoded
from tiltmeter_lab.shared.route_runs import KINDS, seconds
from tiltmeter_lab.shared.route_scores import PairScore, Truth, baselines, pair_score, pilot_told, truths
from tiltmeter_lab.shared.route_tasks import RouteTask, draw_route_task

#: What is scored against the training, in the order of the tables.
FORETOLD = tuple(kind for kind in KINDS if kind != "trained")


@dataclass(frozen=True)
class Row:
    """One pair of groups in one run: what the run shows, scores and costs (over that of the training), cheap guesses.

    `pilot` says of every crossing whether the first twentieth of the training tells it.
    """

    run: str
    task: RouteTask
    truth: Truth
    scores: dict[str, PairScore]
    guesses: dict[str, bool | None]
    pilot: tuple[bool, ...]
    costs: dict[str, float]


class ScoredRuns(dict[str, tm.Trajectory]):
    """The runs of a study, whose rows are found once for claims and tables: the tests behind them take long."""

    @cached_property
    def rows(self) -> list[Row]:
        return _rows(self)


def rows(runs: Runs) -> list[Row]:
    """Every pair of every run; none is left out. A kind that was not run for a seed is missing there."""
    return runs.rows if isinstance(runs, ScoredRuns) else _rows(runs)


def _rows(runs: Runs) -> list[Row]:
    found = []
    for name in [name for name in runs if name.endswith(", trained")]:
        short, real = name.removesuffix(", trained"), runs[name]
        task = draw_route_task(int(short.split()[0]))
        given: Any = real.origin.settings["train"]
        sizes = {decoded(label): size for label, size in given["sizes"]}
        rates = {decoded(label): dict(pairs) for label, pairs in given["label_rates"]}
        made = {kind: runs[f"{short}, {kind}"] for kind in FORETOLD if f"{short}, {kind}" in runs}
        spent = {kind: seconds(one) / max(seconds(real), 1e-9) for kind, one in made.items()}
        for truth in truths(real):
            scores = {kind: pair_score(one, real, truth) for kind, one in made.items()}
            found.append(Row(short, task, truth, scores, baselines(sizes, rates, truth), pilot_told(truth), spent))
    return found
