"""leaders: who leads, when, and how sure it is, for any run, forecast or theory."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from tiltmeter.arguments import A_RUN, checked_flag, checked_kind, checked_share
from tiltmeter.leaders.difference import ALL, Difference
from tiltmeter.leaders.exact import exact_curve, revived
from tiltmeter.leaders.headline import Headline, headline, headline_curve
from tiltmeter.leaders.judgement import Basis, Scope, judgement
from tiltmeter.leaders.phases import Course, Crossing, Phase, Undecided, ahead_of_all, exact_course, measured_course
from tiltmeter.leaders.points import JUDGED, described_held_out
from tiltmeter.names import better_of
from tiltmeter.pairs import AskedPair, Pair, groups_of, the_pair
from tiltmeter.question import Question, checked_question
from tiltmeter.record.labelled import JSON, label_to_json
from tiltmeter.record.trajectory import NotebookCard, Trajectory
from tiltmeter.shown_text import NotebookText, text_html

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Leaders(NotebookText):
    """Who leads in the chosen curves, when, and how sure it is; every statement holds together with all others.

    >>> import tiltmeter as tm
    >>> result = tm.leaders(tm.predict(*tm.theory.cases.centred_crossing()))
    >>> result.curve, [phase.leader for phase in result.phases], [round(change.time, 2) for change in result.changes]
    ('loss', ['-', '+'], [5.64])
    >>> print(result.of("error").headline.claim)
    Group + has the lower error throughout.

    `phases`, `changes` and the leaders are those of one curve, `curve`: the one the headline is about. `of("error")` is
    the same for another curve.

    Args:
        differences: Every pair of groups in every curve, with its limits.
        curves: Curves that were judged.
        groups: Groups that were judged.
        level: Error rate of all statements together.
        scope: What the statements are about: the "run", the "runs", or any seed of the "recipe".
        basis: What the limits rest on: "points", "standard errors", "seeds", "values", "forecast" or "exact".
        evaluations: Evaluations that were tested together.
        clock: What time counts: "step", "epoch", "round" or "t".
        reasons: Why a curve, or a group in a curve, is not judged.
        notes: Other remarks.
        one_of: Pairs of groups among which the only one was chosen; the error rate does not cover this choice.
        asked: Curves that were asked for, in their order.
        question: What a positive decision means to a person; None: not given.
        trajectory: Run that was judged.
    """

    differences: tuple[Difference, ...]
    curves: tuple[str, ...]
    groups: tuple[Hashable, ...]
    level: float
    scope: Scope
    basis: Basis
    evaluations: int
    clock: str
    reasons: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    one_of: int = 1
    asked: tuple[str, ...] = ()
    question: Question | None = None
    trajectory: Trajectory | None = field(default=None, repr=False)

    @cached_property
    def headline(self) -> Headline:
        """The answer: the largest difference that is clear, or that none is, and what this rests on."""
        return headline(self)

    @property
    def curve(self) -> str:
        """The curve that the headline is about."""
        return headline_curve(self)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Intervals of training with one leader; of exact losses, with the cause of the gap."""
        return self.course(self.curve).phases

    @property
    def changes(self) -> tuple[Crossing, ...]:
        """Every lead change that is clear, in order of time."""
        return self.course(self.curve).changes

    @property
    def undecided(self) -> tuple[Undecided, ...]:
        """Intervals in which the measured gap changes sign within its limits."""
        return self.course(self.curve).undecided

    @property
    def first(self) -> Hashable:
        """The group that leads every other where a leader is first clear; "" if none ever is."""
        return ahead_of_all(self.course(self.curve).first)

    @property
    def last(self) -> Hashable:
        """The group that clearly leads every other at the last evaluation; "" if none does."""
        course = self.course(self.curve)
        if self.basis == "exact":
            return ahead_of_all(course.last)
        return ahead_of_all({one.pair: one.leader[-1] for one in self.of(self.curve).differences})

    @property
    def order(self) -> tuple[Hashable, ...]:
        """The leaders of one pair of groups in turn, one more than there are changes; empty if none is ever clear."""
        course = self.course(self.curve)
        if len(course.first) > 1:
            raise ValueError("Several pairs of groups have no common order of leaders: name two with groups=.")
        first = ahead_of_all(course.first)
        return () if first == "" else (first, *(change.leader_after for change in course.changes))

    def course(self, curve: str) -> Course:
        """How the lead went in one curve: changes, first and last leaders of each pair, phases."""
        if curve not in self._courses:
            assert self.trajectory is not None
            own = self.differences_in(curve)
            if self.basis == "exact":
                pair = own[0].pair if self.one_of > 1 or len(self.groups) == 2 else None
                self._courses[curve] = exact_course(self.trajectory, curve, pair)
            else:
                self._courses[curve] = measured_course(self.trajectory[curve], own)
        return self._courses[curve]

    @cached_property
    def _courses(self) -> dict[str, Course]:
        return {}

    def of(self, curve: str) -> Leaders:
        """The same for one curve, with the limits that hold for all of them."""
        if curve not in self.curves:
            raise KeyError(f"No curve {curve!r}. There are: {', '.join(self.curves)}.")
        differences = self.differences_in(curve)
        reasons = {name: why for name, why in self.reasons.items() if name.split(" of ")[0] == curve}
        return replace(self, differences=differences, curves=(curve,), reasons=reasons)

    def __getitem__(self, key: tuple[str, Pair] | str) -> Difference:
        """The difference in a curve between two groups, the first minus the second."""
        parts: Sequence[Any] = key if isinstance(key, tuple) else (key,)
        if len(parts) != 2 or isinstance(parts[1], str) or len(parts[1]) != 2:
            curve, pair = next(((one.curve, one.pair) for one in self.differences), ("loss", ("a", "b")))
            raise KeyError(f"Ask for a curve and two groups: leaders[{curve!r}, {pair!r}]. Found {key!r}.")
        curve, pair = str(parts[0]), tuple(parts[1])
        for one in self.differences:
            if one.curve == curve and one.pair == pair:
                return one
            if one.curve == curve and one.pair == pair[::-1]:
                return one.reversed
        known = ", ".join(f"[{one.curve!r}, {one.pair!r}]" for one in self.differences)
        raise KeyError(f"No difference in {curve} between {pair[0]} and {pair[1]}. There are: {known or 'none'}.")

    def differences_in(self, curve: str) -> tuple[Difference, ...]:
        """The differences in one curve; none if it was not judged."""
        return tuple(one for one in self.differences if one.curve == curve)

    @property
    def family(self) -> str:
        """What is tested together, in words."""
        curves = len({one.curve for one in self.differences})
        pairs = len({one.pair for one in self.differences})
        parts = ["one evaluation" if self.evaluations == 1 else f"{self.evaluations} evaluations"]
        parts += [f"{curves} measures"] * (curves > 1)
        parts += [f"{pairs} {'groups' if self.against_all else 'pairs'}"] * (pairs > 1)
        return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)

    @property
    def against_all(self) -> bool:
        """Whether each group is compared with all together."""
        return any(one.pair[1] == ALL for one in self.differences)

    def within(self, size: float) -> dict[tuple[str, Pair], float]:
        """Return the differences that are clearly below `size` at the end, and since when.

        `size` should be fixed before the data are seen. This is an equivalence test: a positive finding, unlike a
        difference that is not clear.
        """
        inside = {(one.curve, one.pair): one.within(size) for one in self.differences}
        return {key: stretch.start for key, stretch in inside.items() if stretch is not None}

    def could_be_worst(self, curve: str, evaluation: int = -1) -> tuple[Hashable, ...]:
        """Return the groups that may be the worst off at one evaluation: those not clearly better than another.

        From six groups on, those not clearly better than the mean of all. A single group is clearly the worst.
        """
        own = self.differences_in(curve)
        groups = dict.fromkeys(group for one in own for group in one.pair if group != ALL)
        ahead = {one.leader[evaluation] for one in own if one.judged}
        return tuple(group for group in groups if group not in ahead)

    def to_frame(self) -> pd.DataFrame:
        """One row for each curve and pair: the leader at the end, since when, the gap and its limits there."""
        import pandas as pd

        return pd.DataFrame(self._rows())

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: the headline and the rows of `to_frame`."""
        rows: list[dict[str, JSON]] = [
            {name: label_to_json(value) if name in ("leader", "pair") else value for name, value in row.items()}
            for row in self._rows()
        ]
        return {
            "headline": self.headline.to_json(),
            "level": self.level,
            "basis": self.basis,
            "scope": self.scope,
            "evaluations": self.evaluations,
            "differences": [{name: _finite(value) for name, value in row.items()} for row in rows],
            "reasons": dict(self.reasons),
            "notes": list(self.notes),
        }

    def _since(self, difference: Difference) -> float:
        """Since when a pair has its last leader: of exact theory the crossing itself, not the evaluation after it."""
        crossings = [one for one in self.course(difference.curve).changes if one.pair == difference.pair]
        exact = crossings and crossings[-1].low == crossings[-1].high and not np.isnan(difference.since)
        return crossings[-1].time if exact else difference.since

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "curve": one.curve,
                "pair": one.pair,
                "leader": one.leader[-1] if len(one.times) else "",
                "since": self._since(one),
                "gap": float(one.gap[-1]),
                "low": float(one.lower[-1]),
                "high": float(one.upper[-1]),
            }
            for one in self.differences
            if one.judged
        ]

    def __str__(self) -> str:
        notes = [f"{note}." for note in self.notes if note not in self.headline.claim]
        return "\n".join([str(self.headline), *notes])


def leaders(
    trajectory: Trajectory,
    *curves: str,
    question: Question | None = None,
    groups: AskedPair | None = None,
    level: float = 0.05,
    every_pair: bool | None = None,
) -> Leaders:
    """Say who leads in these curves, when, and how sure it is (default: loss, error, positive_rate, tpr, fpr).

    >>> import tiltmeter as tm
    >>> print(leaders(tm.predict(*tm.theory.cases.centred_crossing())))
    Group - has the lower loss until t = 5.643 (larger variance), then group + (more data).
    Exact theory.

    A measured run is judged from the points that its probe kept. Limits hold at all evaluations, for all pairs of
    groups and in all chosen curves together, with probability 1 - `level`; so any statement may be quoted alone, even
    one that was chosen after seeing the data. A difference is *clear* where its limits exclude zero. The untrained
    network never leads. A forecast is judged by its band and its points. For exact theory, lead changes are found by
    root finding and need no test.

    `groups` names two groups to be compared alone, chosen before the data are seen. From six groups on, each is
    compared with the mean of all (`every_pair` True or False chooses one or the other).

    "Not clear" is not "no difference": the limits say what is ruled out. The error rate does not hold for points that
    were also used to choose when to stop or which run to take.

    Args:
        trajectory: Run to look at: theory, simulation, forecast or training.
        *curves: Curves to judge; none: loss, error, positive_rate, tpr and fpr, as far as recorded.
        question: Its curve comes first; None: the question that the data carry.
        groups: Two groups to compare alone, chosen before the data are seen; None: all.
        level: Error rate of all statements together.
        every_pair: Whether all pairs are compared; None: each with the mean of all, from six groups on.
    """
    checked_kind("trajectory", trajectory, Trajectory, A_RUN)
    checked_share("level", level)
    checked_question(question)
    question = question if question is not None else asked_of(trajectory)
    trajectory = _as_asked(revived(trajectory), question)
    names = _names(trajectory, curves, question)
    first = trajectory[names[0]]
    pair = None if groups is None else the_pair(first, groups)
    if every_pair is not None:
        every_pair = checked_flag("every_pair", every_pair)
    judged = judgement(trajectory, names, pair, level, every_pair)
    exact = all("seed" not in trajectory[name].dims and exact_curve(trajectory, name) is not None for name in names)
    return Leaders(
        differences=judged.differences,
        curves=tuple(names),
        groups=tuple(pair or groups_of(first)),
        level=judged.level,
        scope=judged.scope,
        basis="exact" if exact else judged.basis,
        evaluations=judged.evaluations,
        clock=trajectory.clock,
        reasons=judged.reasons,
        notes=judged.notes,
        one_of=1 if pair is None else comb(len(groups_of(first)), 2),
        asked=tuple(dict.fromkeys(curves)) or (() if question is None else question.curves),
        question=question,
        trajectory=trajectory,
    )


def _as_asked(trajectory: Trajectory, question: Question | None) -> Trajectory:
    """The run with the directions that the question gives: to be selected for a burden is no advantage."""
    if question is None:
        return trajectory
    turned = {
        name: curve if question.better(name) is None else curve.assign_attrs(better=question.better(name))
        for name, curve in trajectory.items()
    }
    return trajectory.replace(turned, trajectory.evaluate)


def asked_of(trajectory: Trajectory) -> Question | None:
    """The question that the held-out data of a run or forecast carry; None if they carry none."""
    stored = described_held_out(trajectory).get("question")
    return Question.from_json(stored) if isinstance(stored, Mapping) else None


def _names(trajectory: Trajectory, curves: tuple[str, ...], question: Question | None) -> list[str]:
    """The curves to judge, checked."""
    if not curves:
        asked = () if question is None else question.curves
        curves = tuple(name for name in (*asked, *JUDGED) if name in trajectory and "group" in trajectory[name].dims)
        if not curves:
            raise ValueError(f"There is none of the curves {', '.join(JUDGED)} with groups: name the curves to judge.")
    for name in dict.fromkeys(curves):
        values = trajectory[name]
        if len(groups_of(values)) < 2:
            raise ValueError("There is one group only: nothing to compare.")
        if better_of(name, values) == "neither":
            raise ValueError(f"Curve {name!r} is neither better high nor better low, so no group leads in it.")
        extra = [str(dim) for dim in values.dims if dim not in ("time", "group", "seed")]
        if extra == ["class"]:
            raise ValueError(f"Curve {name!r} has one value per class: use `class_leaders`, or select a class.")
        if extra:
            raise ValueError(
                f"`leaders` is for one run; this one has a grid over {', '.join(extra)}. Use `theory.crossing_count` "
                "and `theory.leader_on_grid`, or select one point."
            )
        if not values.sizes["time"]:
            raise ValueError(f"Curve {name!r} has no evaluations: nothing is recorded yet.")
    return list(dict.fromkeys(curves))


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


#: Runs with more values of points than this are shown in a notebook without a judgement, which would take seconds.
MOST_SHOWN = 5_000_000


def _card(trajectory: Trajectory) -> str:
    """The headline of a run as HTML; nothing where there is nothing to compare, or too much to wait for."""
    if sum(values.size for values in trajectory.points.values()) > MOST_SHOWN:
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return text_html(str(leaders(trajectory).headline))
    except Exception:  # what only shows a run must not fail, whatever its curves hold
        return ""


NotebookCard.of = staticmethod(_card)
