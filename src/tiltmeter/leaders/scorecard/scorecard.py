"""scorecard: interventions beside the plain training, judged by their whole trajectories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tiltmeter.arguments import A_RUN, checked_kind
from tiltmeter.leaders.leaders import Leaders, leaders
from tiltmeter.leaders.points import held_out_facts
from tiltmeter.leaders.scorecard.group_values import (
    GroupValues,
    PerSeed,
    area_weights,
    at_evaluations,
    clock_levels,
    common_evaluations,
    gradient_evaluations,
    point_error,
    point_values,
    restricted,
    selected_weights,
    training_shares,
)
from tiltmeter.leaders.scorecard.score import Paid, Peak, Score, SeedMean
from tiltmeter.leaders.scorecard.selections import Last, Selection
from tiltmeter.names import NOBODY
from tiltmeter.pairs import SURE
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import NotebookText, visible

#: Parts of the baseline's fall, in the mean loss, at which the loss clock is read.
LEVELS = (0.5, 0.9)


def _shared(run: GroupValues, baseline: GroupValues) -> tuple[list[int], list[int]]:
    """The places of the seeds that both runs have; of all seeds if they share none."""
    shared = [seed for seed in run.seeds if seed in baseline.seeds]
    if not shared:
        return list(range(len(run.seeds))), list(range(len(baseline.seeds)))
    return [run.seeds.index(seed) for seed in shared], [baseline.seeds.index(seed) for seed in shared]


def _change(one: np.ndarray, other: np.ndarray, run: GroupValues, baseline: GroupValues) -> SeedMean:
    """The difference, paired by the seeds that both runs have; without such seeds, from the scatter of each."""
    if run.exact and baseline.exact:
        return SeedMean(float(one[0] - other[0]), 0.0, run.resolution + baseline.resolution)
    mine, theirs = _shared(run, baseline)
    if set(run.seeds) & set(baseline.seeds):
        return SeedMean.over(one[mine] - other[theirs])
    a, b = SeedMean.over(one, run.exact), SeedMean.over(other, baseline.exact)
    return SeedMean(a.value - b.value, float(np.hypot(a.error, b.error)))


def _with_points(found: SeedMean, error: float) -> SeedMean:
    """The mean with the error of the points added in squares; of one seed it is the only one known."""
    if not error > 0:
        return found
    return SeedMean(found.value, float(np.hypot(found.error, error)) if np.isfinite(found.error) else error)


def _known_to(found: SeedMean, run: GroupValues, per_evaluation: np.ndarray) -> SeedMean:
    """A mean over training of exact curves: where evaluations are few, it is known less exactly."""
    return replace(found, resolution=found.resolution + run.spacing_error(per_evaluation))


def score(name: str, one: PerSeed, reference: PerSeed, led: Leaders, before: Leaders, cost: float) -> Score:
    """The row of one run: its numbers, and their changes against those of the baseline."""
    run, groups = one.run, one.run.groups
    mine, theirs = _shared(run, reference.run)

    def estimate(values: np.ndarray, weights: np.ndarray | None = None) -> SeedMean:
        found = SeedMean.over(values, run.exact)
        if weights is None:
            return found
        return _with_points(found, point_error(one.points, weights, list(range(len(run.seeds)))))

    def change(values: np.ndarray, others: np.ndarray, weights: np.ndarray, base: np.ndarray) -> SeedMean:
        found = _change(values, others, run, reference.run)
        if one.points is None or reference.points is None:
            return found
        return _with_points(found, point_error(one.points, weights, mine, reference.points, base, theirs))

    def of_group(group: int | None) -> tuple[np.ndarray, np.ndarray]:
        return selected_weights(run, one.evaluations, group), selected_weights(
            reference.run, reference.evaluations, group
        )

    worst_change = change(one.worst, reference.worst, *of_group(None))
    areas = [[area_weights(which.run, gap) for which in (one, reference)] for gap in (False, True)]
    worst_area_change = change(one.worst_area, reference.worst_area, *areas[0])
    gap_area_change = change(one.gap_area, reference.gap_area, *areas[1])
    if run.exact and reference.run.exact:
        worst_area_change = _known_to(worst_area_change, run, run.values.max(2) - reference.run.values.max(2))
        gap_area_change = _known_to(gap_area_change, run, np.ptp(run.values, 2) - np.ptp(reference.run.values, 2))
    per_group = [change(one.at_selected[:, g], reference.at_selected[:, g], *of_group(g)) for g in range(len(groups))]
    possible = _could_be_worst(one, led)
    changes, changes_before = (Counter(frozenset(change.pair) for change in many.changes) for many in (led, before))
    return Score(
        name=name,
        worst_group=possible[0] if len(possible) == 1 else NOBODY,
        could_be_worst=possible,
        worst=estimate(one.worst, of_group(None)[0]),
        worst_change=worst_change,
        best_ever=estimate(one.best_ever),
        best_ever_time=one.best_ever_time,
        reopened=estimate(run.values[:, -1].max(axis=1) - one.best_ever),
        worst_area=estimate(one.worst_area, areas[0][0]),
        worst_area_change=worst_area_change,
        gap_area=estimate(one.gap_area, areas[1][0]),
        gap_area_change=gap_area_change,
        noise_floor=_noise_floor(run),
        peak=_peak(run),
        leaders=led,
        gap=float(np.ptp(run.values[:, -1].mean(0))),
        crossings=len(led.changes),
        created=sum((changes - changes_before).values()),
        removed=sum((changes_before - changes).values()),
        loss_clock=tuple(estimate(values) for values in one.reached),
        loss_clock_change=tuple(
            _change(values, others, run, reference.run)
            for values, others in zip(one.reached, reference.reached, strict=True)
        ),
        cost=cost,
        paid=tuple(Paid(group, by) for group, by in zip(groups, per_group, strict=True) if by.sign > 0),
        levels_down=gap_area_change.sign < 0 and max(worst_area_change.sign, worst_change.sign) > 0,
        at_selected=tuple(estimate(one.at_selected[:, g], of_group(g)[0]) for g in range(len(groups))),
        areas_by_seed=tuple(zip(one.gap_area.tolist(), one.worst_area.tolist(), strict=True)),
        diverged=not bool(np.isfinite(one.worst_area).all()),
    )


def _could_be_worst(one: PerSeed, led: Leaders) -> tuple[Hashable, ...]:
    """The groups that may be the worst at the selected evaluation: one if it is shown, or where values are exact.

    All groups where seeds were judged at different evaluations, or nothing was judged.
    """
    groups = one.run.groups
    if one.run.exact or led.basis == "exact":
        return (groups[int(np.argmax(one.at_selected.mean(axis=0)))],)
    times = {float(one.run.times[evaluation]) for evaluation in one.evaluations}
    chosen = led.chosen
    if chosen is None or len(times) > 1:
        return tuple(groups)
    evaluation = int(np.abs(chosen.times - times.pop()).argmin())
    if len(groups) == 2:
        return tuple(group for group in groups if group != chosen.leader[evaluation])
    return led.could_be_worst if led.could_be_worst and evaluation == len(chosen.times) - 1 else tuple(groups)


def _peak(run: GroupValues) -> Peak:
    mean = run.values.mean(axis=0)
    gap = np.where(np.isfinite(mean).all(axis=1), np.ptp(mean, axis=1), -np.inf)
    evaluation = int(np.argmax(gap))
    worse, better = int(np.argmax(mean[evaluation])), int(np.argmin(mean[evaluation]))
    return Peak(float(gap[evaluation]), float(run.times[evaluation]), run.groups[worse], run.groups[better])


def _noise_floor(run: GroupValues) -> float:
    """sqrt(2/pi) times the scatter of the gap over seeds, over training; of several pairs the largest."""
    if run.exact:
        return 0.0
    if len(run.seeds) < 2:
        return float("nan")
    gaps = run.values[:, :, :, None] - run.values[:, :, None, :]
    scatter = gaps.std(axis=0, ddof=1).max(axis=(1, 2))
    return float(np.sqrt(2.0 / np.pi) * run.over_training(scatter[None])[0])


@dataclass(frozen=True)
class Scorecard(NotebookText):
    """The runs in the order given, the baseline first; as text, one sentence each and what the numbers rest on.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> settings = {"plain": tm.SGD(lr=0.2), "faster": tm.SGD(lr=0.4)}
    >>> card = tm.scorecard({name: tm.predict(problem, sgd, [0.0, 1.0, 60.0]) for name, sgd in settings.items()})
    >>> [row.name for row in card.rows], card.baseline.worst_group
    (['plain', 'faster'], '-')
    >>> str(card["faster"].worst_change)
    '0.0553'

    Args:
        rows: One score per run, the baseline first.
        groups: Labels of the groups.
        curve: Curve that is compared.
        clock: What time counts: "step", "epoch", "round" or "t".
        end: Time up to which all runs are compared.
        selection: How the evaluation that judges was chosen, in words.
        optimistic: Whether it was chosen on the points that judge.
        seeds: Seeds of each run.
        exact: Whether all runs are exact theory.
        shares: Share of each group, by which means are weighted.
        basis: Which evaluation, which seeds and which shares the numbers rest on, in words.
    """

    rows: tuple[Score, ...]
    groups: tuple[Hashable, ...]
    curve: str
    clock: str
    end: float
    selection: str
    optimistic: bool
    seeds: int
    exact: bool
    shares: tuple[float, ...]
    basis: str

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
        return visible("\n".join([*lines, self.basis]))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "curve": self.curve,
            "clock": self.clock,
            "end": self.end,
            "selection": self.selection,
            "optimistic": self.optimistic,
            "levels": list(LEVELS),
            "seeds": self.seeds,
            "runs": [row.to_json() for row in self.rows],
        }


def scorecard(
    runs: Mapping[str, Trajectory],
    curve: str = "loss",
    shares: Mapping[Any, float] | None = None,
    select: Selection | None = None,
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

    Runs may come from any route: theory, simulation, forecast, training, ensembles. They are compared at the same
    evaluations, up to the end of the shortest: exact curves are evaluated where they have no evaluation; of measured
    runs, only evaluations that all have count. A smaller gap alone is no improvement: see `levels_down` and `paid`.
    Best-ever values are chosen after the fact.

    Args:
        runs: Runs by name; the first is the baseline.
        curve: Curve in which runs are compared.
        shares: Share of each group, by which means are weighted; None: those the baseline recorded.
        select: At which evaluation each run is judged; None: `tm.fairness.selections.Last()`.
        level: Error rate of the changes of leader in each run.
    """
    if shares is not None:
        checked_kind("shares", shares, Mapping, "a mapping of groups to shares")
    if select is not None and not (hasattr(select, "on") and callable(getattr(select, "evaluations", None))):
        raise TypeError(f"`select` should be a rule of tm.fairness.selections, or None. Found {type(select).__name__}.")
    if not isinstance(runs, Mapping):
        raise TypeError(
            f'`runs` should be {{name: run}}, as {{"plain": run, "dro": other}}. Found {type(runs).__name__}.'
        )
    checked_kind("curve", curve, str, "the name of a curve")
    for run in runs.values():
        checked_kind("runs", run, Trajectory, f"{A_RUN}, by name")
    if not runs:
        raise ValueError("A scorecard needs at least one run, the baseline first. Found none.")
    rule = Last() if select is None else select
    found = common_evaluations(runs, curve)
    baseline_name, baseline = next(iter(found.items()))
    weights, known = training_shares(runs[baseline_name], baseline.groups, shares)
    end = float(baseline.times[-1])
    marks = clock_levels(baseline, weights, LEVELS)
    evaluated = {name: restricted(run, curve, baseline.times) for name, run in runs.items()}
    led = {name: leaders(run, curve, level=level) for name, run in evaluated.items()}
    costs = {name: gradient_evaluations(run, end, len(baseline.groups)) for name, run in runs.items()}
    measured = {
        name: PerSeed.of(
            one, _chosen(name, one, rule, curve, weights), weights, marks, point_values(runs[name], one, curve)
        )
        for name, one in found.items()
    }
    reference = measured[baseline_name]
    rows = tuple(
        score(name, one, reference, led[name], led[baseline_name], costs[name] / costs[baseline_name])
        for name, one in measured.items()
    )
    exact, seeds = all(one.exact for one in found.values()), min(len(one.seeds) for one in found.values())
    optimistic, clock = rule.optimistic and not exact, runs[baseline_name].clock
    parts = [f"Judged at {rule.name}, up to {clock} = {end:.6g}"]
    if not all(np.array_equal(run[curve].coords["time"].values, baseline.times) for run in runs.values()):
        some = "the same times" if exact else f"the {len(baseline.times)} evaluations that all runs have"
        parts.append(f"runs have different evaluations and are compared at {some}")
    if optimistic:
        parts.append("chosen on the points that judge it, so too good (optimistic)")
    if not exact:
        several = f"{seeds} seeds; who pays is shown at {SURE:g} standard errors paired by seed"
        parts.append(several if seeds > 1 else "one seed: what is said holds for these runs only")
    if any(held_out_facts(run) for run in runs.values()):
        points_known = all(one.points is not None for one in measured.values())
        included = "errors include those of the points looked at, paired"
        parts.append(included if points_known else "errors of the points looked at are not known")
    equal = "" if known else " (equal shares: the runs do not tell those of training)"
    basis = "; ".join(parts) + f"; means weigh groups as in training{equal}."
    return Scorecard(
        rows, baseline.groups, curve, clock, end, rule.name, optimistic, seeds, exact, tuple(weights.tolist()), basis
    )


def _chosen(name: str, run: GroupValues, rule: Selection, curve: str, shares: np.ndarray) -> np.ndarray:
    """The evaluation of every seed that the rule selects, on other points where it has them."""
    if rule.on is None:
        return rule.evaluations(run.values, shares)
    if name not in rule.on:
        raise ValueError(f"`on` should hold a record on other points for every run. Missing: {name!r}.")
    try:
        other = at_evaluations(rule.on[name], curve, run.groups, run.times)
    except LookupError:
        other = None
    if other is None or other.seeds != run.seeds:
        raise ValueError(f"`on[{name!r}]` should be the same training on other points: same evaluations and seeds.")
    return rule.evaluations(other.values, shares)
