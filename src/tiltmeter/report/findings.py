"""Findings: every number of the page about one run, computed once, so that no two places can disagree."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import comb
from statistics import NormalDist

import numpy as np
import xarray as xr

from tiltmeter.fairness.calibration import Calibration, calibration
from tiltmeter.fairness.estimate import UNKNOWN, Estimate, from_draws, wilson
from tiltmeter.fairness.impact_ratio import ImpactRatio, impact_ratio
from tiltmeter.fairness.last_evaluation import LastEvaluation, Rates, last_evaluation, last_probabilities
from tiltmeter.fairness.thresholds import GroupRoc, roc
from tiltmeter.fairness.why import BaseRateSplit, Splittable, base_rate_split
from tiltmeter.leaders.difference import ALL, Difference
from tiltmeter.leaders.exact import revived
from tiltmeter.leaders.leaders import Leaders, asked_of, leaders
from tiltmeter.leaders.points import FEWEST, JUDGED, held_out_facts
from tiltmeter.names import better_of
from tiltmeter.pairs import Pair
from tiltmeter.plot.theme import group_name
from tiltmeter.question import Question
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.report.terms import TERMS, Term, term_of

#: Measures of the last evaluation that no band over all evaluations judges: their differences share an error rate of
#: their own.
EXTRA = {
    "ppv": Term("ppv", "Precision", "right, of those decided positive", "higher"),
    "errors_removed": Term("errors_removed", "Errors removed", "against the best constant answer", "higher"),
    "auc": Term("auc", "AUC", "a positive ranked above a negative of the same group", "higher"),
}
#: Measures whose differences are split into base rates and decisions.
SPLIT: tuple[Splittable, ...] = ("error", "loss")


@dataclass(frozen=True, eq=False)
class Row:
    """One measure at the last evaluation: a value for every group, and the differences.

    `differences` are those of `pairs`: two groups, or each of more against all others together.
    `counts` are (how many, of how many) of a single run. `course` is the curve over time, mean over seeds.
    """

    term: Term
    values: tuple[Estimate, ...]
    counts: tuple[tuple[int, int] | None, ...]
    differences: tuple[Estimate, ...]
    pairs: tuple[Pair, ...] = ()
    course: xr.DataArray | None = None
    judged: tuple[Difference, ...] = ()

    @property
    def known(self) -> bool:
        """Whether any difference was judged."""
        return any(one.known for one in self.differences)

    @property
    def clear(self) -> tuple[tuple[Pair, Estimate], ...]:
        """The differences that are clear, the largest first, each as a positive one: the first group has more."""
        turned = [
            (pair, one) if one.value > 0 else (pair[::-1], one.times(-1.0))
            for pair, one in zip(self.pairs, self.differences, strict=True)
            if one.shown
        ]
        return tuple(sorted(turned, key=lambda each: -each[1].value))

    @property
    def largest(self) -> float:
        """How large a difference may be by its limits."""
        ends = [max(abs(one.low), abs(one.high)) for one in self.differences if one.known]
        return max(ends, default=float("nan"))

    def enough(self, place: int) -> bool:
        """Whether a group has enough counted points to be judged in this measure."""
        count = self.counts[place]
        return count is None or count[1] >= FEWEST

    def worse_off(self) -> tuple[Hashable, ...]:
        """Groups that are clearly worse off than all others; nobody where neither way is better."""
        return self._ends(0 if self.term.better == "lower" else 1)

    def better_off(self) -> tuple[Hashable, ...]:
        """Groups that are clearly better off than all others, and worse off than none."""
        worse = self.worse_off()
        return tuple(group for group in self._ends(1 if self.term.better == "lower" else 0) if group not in worse)

    def _ends(self, place: int) -> tuple[Hashable, ...]:
        if self.term.better == "neither":
            return ()
        return tuple(dict.fromkeys(pair[place] for pair, _ in self.clear if pair[place] != ALL))


@dataclass(frozen=True, eq=False)
class Findings:
    """All about one run. `rows` are judged together over all evaluations, `extra` at the last evaluation alone."""

    run: Trajectory
    name: str
    question: Question | None
    groups: tuple[Hashable, ...]
    last: float
    headline: Row
    rows: dict[str, Row]
    extra: dict[str, Row]
    judged: Leaders
    evaluation: LastEvaluation | None
    impact: ImpactRatio | None
    calibration: Calibration | None
    splits: tuple[BaseRateSplit, ...]
    seeds: int
    rocs: tuple[GroupRoc, ...] = ()

    @property
    def clock(self) -> str:
        return self.run.clock

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(group_name, self.groups))

    @property
    def two(self) -> bool:
        return len(self.groups) == 2

    @property
    def many(self) -> bool:
        """Whether each group is compared with all others together: from three on."""
        return len(self.groups) > 2

    @property
    def several(self) -> bool:
        """Whether there are several evaluations: with one there is no training to speak of."""
        return len(self.run[self.headline.term.curve]["time"]) > 1

    @property
    def base_rates(self) -> np.ndarray | None:
        return None if self.evaluation is None else self.evaluation.rates().base_rate

    @property
    def scope(self) -> str:
        """What the numbers speak of."""
        if self.judged.basis in ("values", "exact") and not held_out_facts(self.run):
            return "exact"
        return self.judged.scope

    @property
    def clear_from(self) -> float:
        """From when on the headline's difference stays clear; NaN if it is not clear at the end."""
        return float("nan") if self.judged.chosen is None else self.judged.chosen.since

    @property
    def gap(self) -> float:
        """The headline's value of the first of the two groups that the page compares, minus that of the second."""
        first, second = self.pair
        return float(self.headline.values[first].value - self.headline.values[second].value)

    @property
    def not_judged(self) -> str:
        """Why nothing was judged."""
        return next(iter((*self.judged.reasons.values(), *self.judged.notes)), "no errors are known")

    @property
    def seed_gaps(self) -> np.ndarray | None:
        """The headline's difference at the end in every seed; positive where it has the sign of the mean."""
        curve = self.run[self.headline.term.curve]
        if "seed" not in curve.dims:
            return None
        last = curve.isel(time=-1).transpose("group", "seed").values.astype(float)
        gaps = last[self.pair[0]] - last[self.pair[1]]
        gaps = gaps[np.isfinite(gaps)]
        return np.asarray(gaps * np.sign(gaps.mean()))

    def enough(self, place: int) -> bool:
        """Whether a group has enough counted points for the headline to say something."""
        return self.headline.enough(place)

    @property
    def focus(self) -> int | None:
        """Of several groups, the place of the one that the first screen compares with all others: the headline's."""
        chosen = self.judged.chosen
        if not self.many or chosen is None:
            return None
        if chosen.pair[0] in self.groups:
            return self.groups.index(chosen.pair[0])
        known = [
            (pair, one) for pair, one in zip(self.headline.pairs, self.headline.differences, strict=True) if one.known
        ]
        if not known:
            return None
        return self.groups.index(max(known, key=lambda each: (each[1].shown, abs(each[1].value)))[0][0])

    @property
    def pair(self) -> tuple[int, int]:
        """Places of the two groups that the page compares: those of the headline, the worse off first.

        Without a clear difference between two, the worst and the best of those with enough points; of many groups the
        headline's is one of them.
        """
        clear = [pair for pair, _ in self.headline.clear if ALL not in pair]
        if clear:
            first, second = (self.groups.index(group) for group in clear[0])
            return (second, first) if self.headline.term.better == "higher" else (first, second)
        sign = -1.0 if self.headline.term.better == "higher" else 1.0
        values = np.array([one.value for one in self.headline.values]) * sign
        known = np.isfinite(values) & np.array([self.enough(place) for place in range(len(self.groups))])
        if not known.any():
            known = np.isfinite(values)
        worst, best = int(np.where(known, values, -np.inf).argmax()), int(np.where(known, values, np.inf).argmin())
        if self.focus is None:
            return worst, best
        to_worst, to_best = abs(values[[worst, best]] - values[self.focus])
        return (self.focus, best) if to_worst <= to_best else (worst, self.focus)

    @property
    def colours(self) -> list[str]:
        """The class of every group in pictures: its colour, or grey where many groups leave room for two only."""
        if not self.many:
            return [f"g{place}" for place in range(len(self.groups))]
        first, second = self.pair if self.focus != self.pair[1] else self.pair[::-1]
        return ["g0" if place == first else "g1" if place == second else "rest" for place in range(len(self.groups))]


def findings(trajectory: Trajectory, name: str = "", question: Question | None = None, level: float = 0.05) -> Findings:
    """Ask everything about one run; `question` is by default the one that its data carry."""
    run = revived(trajectory)  # a theory from disk is solved again once, not for every question
    question = question if question is not None else asked_of(run)
    curves = {curve: run[curve] for curve in _shown(run)}
    if not curves:
        raise ValueError("The runs share none of the curves loss, error, squared_error: nothing to report.")
    if question is not None and question.asked not in run:
        raise ValueError(f"The question is asked of the curve {question.asked!r}, which the run does not have.")
    terms = {curve: term_of(curve, question, better_of(curve, curves[curve])) for curve in curves}
    judged = leaders(run, *_asked(terms, question), question=question, level=level)
    headline = judged.curve
    groups = tuple(curves[headline].coords["group"].values.tolist())
    evaluation = None if held_out_facts(run).get("weighted") or judged.evaluations == 0 else last_evaluation(run)
    chance = None if evaluation is None else last_probabilities(run, evaluation)
    rocs = () if evaluation is None or chance is None else roc(evaluation, chance)
    rows = {curve: _row(term, run, groups, judged.differences_in(curve), evaluation) for curve, term in terms.items()}
    splits: tuple[BaseRateSplit, ...] = ()
    impact = None
    if evaluation is not None:
        pair = _furthest(rows["error"], groups, evaluation) if "error" in rows else groups[:2]
        # The pair is chosen after looking, so limits allow for all of them.
        splits = tuple(base_rate_split(evaluation, curve, pair, level / comb(len(groups), 2)) for curve in SPLIT)
        impact = impact_ratio(evaluation, level)
    return Findings(
        run,
        name,
        question,
        groups,
        float(curves[headline].coords["time"].values[-1]),
        rows[headline],
        rows,
        {} if evaluation is None else _extra(evaluation, level) | _ranking(groups, rocs, level),
        judged,
        evaluation,
        impact,
        None if evaluation is None and "confidence" not in run.points else calibration(run, level=level),
        splits,
        max(curve.sizes.get("seed", 1) for curve in curves.values()),
        rocs,
    )


def _asked(terms: dict[str, Term], question: Question | None) -> tuple[str, ...]:
    """The curves of the family: none means those of `leaders` itself, so that page and terminal judge the same."""
    if any(curve in JUDGED for curve in terms) or question is not None:
        return ()
    return tuple(terms)


def _shown(run: Trajectory) -> list[str]:
    """Curves of groups over time in which one group can be better off, in the order of the page."""
    fit = [
        name
        for name, values in run.items()
        if "group" in values.dims
        and set(values.dims) <= {"time", "group", "seed"}
        and not name.endswith("_se")
        and values.sizes["group"] > 1
        and values.sizes["time"] > 0
    ]
    own = [n for n in fit if n not in TERMS and n not in ("margin", "ppv") and better_of(n, run[n]) != "neither"]
    return [name for name in TERMS if name in fit] + own


def _row(
    term: Term,
    run: Trajectory,
    groups: tuple[Hashable, ...],
    judged: tuple[Difference, ...],
    evaluation: LastEvaluation | None,
) -> Row:
    course = run[term.curve].mean("seed") if "seed" in run[term.curve].dims else run[term.curve]
    course = course.transpose("time", "group")
    last = course.isel(time=-1).values.astype(float)
    counts = _counts(evaluation, term.curve, last)
    error = run.get(f"{term.curve}_se")
    errors = np.full(len(groups), np.nan)
    if error is not None and "group" in error.dims:
        error = error.mean("seed") if "seed" in error.dims else error
        errors = error.isel(time=-1).sel(group=course.coords["group"]).values.astype(float)
    values = tuple(
        wilson(float(value), count[1]) if count is not None else Estimate(float(value), value - 2 * se, value + 2 * se)
        for value, count, se in zip(last, counts, errors, strict=True)
    )
    own = tuple(one for one in judged if set(one.pair) <= {*groups, ALL})
    differences = tuple(Estimate(*(float(part[-1]) for part in (one.gap, one.lower, one.upper))) for one in own)
    one_run = evaluation is not None and evaluation.seeds == 1
    return Row(
        term,
        values,
        counts if one_run else tuple(None if c is None else (-1, c[1]) for c in counts),
        differences,
        tuple(one.pair for one in own),
        course,
        own,
    )


def _counts(evaluation: LastEvaluation | None, curve: str, last: np.ndarray) -> tuple[tuple[int, int] | None, ...]:
    if evaluation is None or curve not in ("tpr", "fpr", "positive_rate", "error"):
        return (None,) * len(last)
    cells = evaluation.counts
    of = {"tpr": cells[:, 1], "fpr": cells[:, 0]}.get(curve, cells.sum(1))
    return tuple((round(float(value) * n) if n else 0, int(n)) for value, n in zip(last, of, strict=True))


def _extra(evaluation: LastEvaluation, level: float) -> dict[str, Row]:
    rates, drawn = evaluation.rates(), evaluation.redrawn
    two = len(evaluation.groups) == 2
    found = {}
    for name in ("ppv", "errors_removed"):
        term = EXTRA[name]
        enough = _enough(rates, name)
        now, many = getattr(rates, name), getattr(drawn, name)
        values = tuple(
            from_draws(float(now[g]), many[:, g]) if enough[g] else Estimate(float(now[g]), np.nan, np.nan)
            for g in range(len(evaluation.groups))
        )
        gap = UNKNOWN
        if two and enough.all():
            gap = from_draws(float(now[0] - now[1]), many[:, 0] - many[:, 1], level / len(EXTRA))
        found[name] = _extra_row(term, values, gap if two else None, evaluation.groups)
    return found


def _extra_row(term: Term, values: tuple[Estimate, ...], gap: Estimate | None, groups: tuple[Hashable, ...]) -> Row:
    """A measure of the last evaluation, compared between two groups only."""
    if gap is None:
        return Row(term, values, (None,) * len(groups), ())
    return Row(term, values, (None,) * len(groups), (gap,), ((groups[0], groups[1]),))


def _ranking(groups: tuple[Hashable, ...], rocs: tuple[GroupRoc, ...], level: float) -> dict[str, Row]:
    """The areas under the curves of groups, where probabilities were kept."""
    if not rocs:
        return {}
    by_group = {one.group: one for one in rocs}
    errors = {group: one.error for group, one in by_group.items()}
    values = tuple(
        _normal(by_group[group].auc, errors[group], 0.05) if group in by_group else UNKNOWN for group in groups
    )
    gap = UNKNOWN
    if len(groups) == len(rocs) == 2:
        a, b = rocs
        gap = _normal(a.auc - b.auc, float(np.hypot(a.error, b.error)), level / len(EXTRA))
    return {"auc": _extra_row(EXTRA["auc"], values, gap if len(groups) == 2 else None, groups)}


def _normal(value: float, error: float, level: float) -> Estimate:
    half = NormalDist().inv_cdf(1.0 - level / 2.0) * error
    return Estimate(value, max(value - half, -1.0), min(value + half, 1.0))


def _enough(rates: Rates, name: str) -> np.ndarray:
    """Groups with enough points in the denominator."""
    sizes = rates.count.sum(-1)
    below = rates.positive_rate * sizes if name == "ppv" else rates.constant_error * sizes
    return np.asarray(below >= FEWEST)


def _furthest(row: Row, groups: tuple[Hashable, ...], evaluation: LastEvaluation) -> tuple[Hashable, Hashable]:
    """The two groups with enough points of both labels whose values lie furthest apart, the larger first."""
    values, enough = np.array([one.value for one in row.values]), evaluation.counts.min(1) >= FEWEST
    values = np.where(enough, values, np.nan) if enough.sum() > 1 else values
    return groups[int(np.nanargmax(values))], groups[int(np.nanargmin(values))]
