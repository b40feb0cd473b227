"""scorecard: interventions beside the plain training, judged by their whole trajectories."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.analysis.crossings import crossings
from tiltmeter.analysis.look_facts import looked_at
from tiltmeter.analysis.pairs import SURE
from tiltmeter.analysis.scorecard.against_baseline import score
from tiltmeter.analysis.scorecard.group_values import GroupValues, group_values, on_common_stretch
from tiltmeter.analysis.scorecard.loss_clock import clock_levels
from tiltmeter.analysis.scorecard.per_seed import PerSeed
from tiltmeter.analysis.scorecard.point_errors import point_values
from tiltmeter.analysis.scorecard.score import Score
from tiltmeter.analysis.scorecard.selection import Last, Selection
from tiltmeter.analysis.scorecard.training_facts import gradient_evaluations, training_shares
from tiltmeter.notebook_text import NotebookText
from tiltmeter.record.trajectory import Trajectory


@dataclass(frozen=True)
class Scorecard(NotebookText):
    """The runs in the order given, the baseline first; as text, one sentence each and what the numbers rest on."""

    rows: tuple[Score, ...]
    groups: tuple[Hashable, ...]
    curve: str
    clock: str
    end: float
    selection: str
    optimistic: bool
    levels: tuple[float, ...]
    seeds: int
    exact: bool
    shares: tuple[float, ...]
    shares_known: bool
    points_known: bool | None = None

    @property
    def baseline(self) -> Score:
        return self.rows[0]

    def __getitem__(self, name: str) -> Score:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"No run {name!r}. There are: {', '.join(row.name for row in self.rows)}.")

    def __str__(self) -> str:
        lines = [row.sentence(self.baseline.name, self.curve) for row in self.rows]
        return "\n".join([*lines, self.basis])

    @property
    def basis(self) -> str:
        """Which look, which seeds, which shares."""
        parts = [f"Judged at {self.selection}, up to {self.clock} = {self.end:.6g}"]
        if self.optimistic:
            parts.append("chosen on the points that judge it, so too good (optimistic)")
        if not self.exact:
            several = f"{self.seeds} seeds; who pays is shown at {SURE:g} standard errors paired by seed"
            parts.append(several if self.seeds > 1 else "one seed: what is said holds for these runs only")
        if self.points_known is not None:
            included = "errors include those of the points looked at, paired"
            parts.append(included if self.points_known else "errors of the points looked at are not known")
        known = "" if self.shares_known else " (equal shares: the runs do not tell those of training)"
        return "; ".join(parts) + f"; means weigh groups as in training{known}."

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "curve": self.curve,
            "clock": self.clock,
            "end": self.end,
            "selection": self.selection,
            "optimistic": self.optimistic,
            "levels": list(self.levels),
            "seeds": self.seeds,
            "runs": [row.to_json() for row in self.rows],
        }


def scorecard(
    runs: Mapping[str, Trajectory],
    curve: str = "loss",
    shares: Mapping[Any, float] | None = None,
    select: Selection | None = None,
    levels: Sequence[float] = (0.5, 0.9),
    level: float = 0.05,
) -> Scorecard:
    """Runs with interventions against the first run, the baseline: what changed over training, and who paid.

    >>> import numpy as np
    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> laws = {"plain": (), "balanced": (tm.interventions.Balanced(by="draws"),)}
    >>> times = np.append(0.0, np.geomspace(0.02, 60.0, 200))
    >>> runs = {name: tm.predict(problem, tm.SGD(lr=0.2, interventions=law), times) for name, law in laws.items()}
    >>> card = scorecard(runs)
    >>> round(card["balanced"].worst.value, 4), card["balanced"].levels_down
    (0.2888, False)

    Runs may come from any route: theory, simulation, forecast, training, ensembles. They are compared up to the end of
    the shortest. `select` says at which look each is judged (default: `tm.selections.Last()`); `shares` are the shares
    of groups in training, by which means are weighted (default: those the baseline recorded). `levels` are the parts of
    the baseline's fall at which the loss clock is read. Changes of leader hold at the error rate `level` in each run.
    A smaller gap alone is no improvement: see `levels_down` and `paid`. Best-ever values are chosen after the fact.
    """
    if not isinstance(runs, Mapping):
        raise TypeError(
            f'`runs` should be {{name: run}}, as {{"plain": run, "dro": other}}. Found {type(runs).__name__}.'
        )
    if len(runs) < 2:
        raise ValueError(f"A scorecard needs at least two runs, the baseline first. Found {len(runs)}.")
    for part in levels:
        if not 0.0 < part <= 1.0:
            raise ValueError(f"`levels` should be parts of the baseline's fall, above 0 and at most 1. Found {part}.")
    rule = Last() if select is None else select
    found = on_common_stretch(runs, curve)
    baseline_name, baseline = next(iter(found.items()))
    weights, known = training_shares(runs[baseline_name], baseline.groups, shares)
    end = float(baseline.times[-1])
    marks = clock_levels(baseline, weights, levels)
    crossed = {name: crossings(run, curve, level=level) for name, run in runs.items()}
    costs = {name: gradient_evaluations(run, end, len(baseline.groups)) for name, run in runs.items()}
    measured = {
        name: PerSeed.of(
            one, _chosen(name, one, rule, curve, weights), weights, marks, point_values(runs[name], one, curve)
        )
        for name, one in found.items()
    }
    reference = measured[baseline_name]
    rows = tuple(
        score(name, one, reference, crossed[name], crossed[baseline_name], costs[name] / costs[baseline_name])
        for name, one in measured.items()
    )
    exact = all(one.exact for one in found.values())
    return Scorecard(
        rows=rows,
        groups=baseline.groups,
        curve=curve,
        clock=runs[baseline_name].clock,
        end=end,
        selection=rule.name,
        optimistic=rule.optimistic and not exact,
        levels=tuple(levels),
        seeds=min(len(one.seeds) for one in found.values()),
        exact=exact,
        shares=tuple(weights.tolist()),
        shares_known=known,
        points_known=all(one.points is not None for one in measured.values())
        if any(looked_at(run) for run in runs.values())
        else None,
    )


def _chosen(name: str, run: GroupValues, rule: Selection, curve: str, shares: np.ndarray) -> np.ndarray:
    """The look of every seed that the rule selects, on other points where it has them."""
    if rule.on is None:
        return rule.looks(run.values, shares)
    if name not in rule.on:
        raise ValueError(f"`on` should hold a record on other points for every run. Missing: {name!r}.")
    other = group_values(rule.on[name], curve, run.groups).until(float(run.times[-1]))
    if not np.array_equal(other.times, run.times) or other.seeds != run.seeds:
        raise ValueError(f"`on[{name!r}]` should be the same training on other points: same looks and seeds.")
    return rule.looks(other.values, shares)
