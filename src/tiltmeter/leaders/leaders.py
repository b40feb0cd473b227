"""leaders: who leads, when, and how sure it is, for any run, forecast or theory."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tiltmeter.arguments import A_RUN, checked_kind, checked_scalar, checked_share
from tiltmeter.leaders.answered import gap_forecast
from tiltmeter.leaders.difference import Difference
from tiltmeter.leaders.exact import exact_curve, revived
from tiltmeter.leaders.headline import Headline, chosen_difference, headline
from tiltmeter.leaders.judgement import Basis, Scope, judgement
from tiltmeter.leaders.phases import Course, Crossing, Phase, Undecided, ahead_of_all, exact_course, measured_course
from tiltmeter.leaders.points import JUDGED, described_held_out
from tiltmeter.leaders.seed_bands import FEWEST_SEEDS
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
        differences: Two groups, or each of more against all others, in every curve, with limits.
        curves: Curves that were judged, the declared rate first.
        groups: Groups that were judged.
        level: Error rate of all statements together.
        scope: What the statements are about: the "run", these "models", or "trainings" like these.
        basis: What the limits rest on: "points", "standard errors", "seeds", "values", "forecast" or "exact".
        evaluations: Evaluations that were tested together.
        clock: What time counts: "step", "epoch", "round" or "t".
        reasons: Why a curve, or a group in a curve, is not judged.
        notes: Other remarks.
        one_of: Pairs of groups among which the only one was chosen; the error rate does not cover this choice.
        asked: Curves that were asked for, in their order.
        question: What a positive decision means to a person; None: not given.
        run: Run that was judged.
        curve: The declared rate: what the headline, `phases` and `changes` are about.
        could_be_worst: Of three groups and more, those that are not clearly better off than another.
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
    run: Trajectory | None = field(default=None, repr=False)
    curve: str = "loss"
    could_be_worst: tuple[Hashable, ...] = ()

    @cached_property
    def headline(self) -> Headline:
        """The answer: the largest difference that is clear, or that none is, and what this rests on."""
        return headline(self)

    @property
    def chosen(self) -> Difference | None:
        """The difference that the headline is about; None: nothing was judged."""
        return chosen_difference(self.differences_in(self.curve))

    @property
    def promise(self) -> Mapping[str, Any]:
        """What a forecast says of its own limits; empty for anything else."""
        told: Any = None if self.run is None else self.run.origin.settings.get("promise")
        return told if isinstance(told, Mapping) else {}

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
        """The group that leads all others where a leader is first clear; "" if none ever is."""
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
            assert self.run is not None
            own = self.differences_in(curve)
            if self.basis == "exact":
                pair = own[0].pair if self.one_of > 1 or len(self.groups) == 2 else None
                self._courses[curve] = exact_course(self.run, curve, pair)
            else:
                self._courses[curve] = measured_course(self.run[curve], own)
        return self._courses[curve]

    @cached_property
    def _courses(self) -> dict[str, Course]:
        return {}

    @property
    def gap_forecast(self) -> dict[str, JSON]:
        """What a forecast says of the gap at the end, for `train(..., forecast=)`; empty if it names nobody."""
        return {} if self.run is None else gap_forecast(self, self.run)

    def of(self, curve: str) -> Leaders:
        """The same for one curve, with the limits that hold for all of them."""
        if curve not in self.curves:
            raise KeyError(f"No curve {curve!r}. There are: {', '.join(self.curves)}.")
        differences = self.differences_in(curve)
        reasons = {name: why for name, why in self.reasons.items() if name.split(" of ")[0] == curve}
        return replace(self, differences=differences, curves=(curve,), curve=curve, reasons=reasons)

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

    def within(self, size: float) -> dict[tuple[str, Pair], float]:
        """Return the differences that are clearly below `size` at the end, and since when.

        `size` should be fixed before the data are seen. This is an equivalence test: a positive finding, unlike a
        difference that is not clear.
        """
        inside = {(one.curve, one.pair): one.within(size) for one in self.differences}
        return {key: stretch.start for key, stretch in inside.items() if stretch is not None}

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
    run: Trajectory,
    *curves: str,
    question: Question | None = None,
    groups: AskedPair | None = None,
    level: float = 0.05,
    scope: Literal["models", "trainings"] | None = None,
) -> Leaders:
    """Say who is worse off in a run, since when, and how sure it is.

    >>> import tiltmeter as tm
    >>> print(leaders(tm.predict(*tm.theory.cases.centred_crossing())))
    Group - has the lower loss until t = 5.643 (larger variance), then group + (more data).
    Exact theory.

    The first curve is the declared rate: of the `question`, else error, squared error or loss. It is asked first at the
    last evaluation, then during training; all other rates are asked at the last evaluation only, the loss last. At most
    a share `level` of runs whose groups are alike gets any statement (3/5, 1/5 and 1/5 of it for the three steps). A
    difference is *clear* where its limits exclude zero. Limits come from the points that a probe kept. A network that
    has hardly begun to learn is not judged. A forecast is judged by its band and its points. For exact theory, lead
    changes are found by root finding and need no test.

    Two groups are compared with each other; of more, each with all others together. Groups by several attributes are
    compared by each attribute alone, and their intersections at the last evaluation. `groups` names two groups to be
    compared alone, chosen before the data are seen.

    "Not clear" is not "no difference": the limits say what is ruled out. The error rate does not hold for points that
    were also used to choose when to stop or which run to take.

    Args:
        run: Run to look at: theory, simulation, forecast or training.
        *curves: Curves to judge, the declared rate first; none: the question's, else error, and what else is recorded.
        question: What a positive decision means to a person; None: the question that the data carry.
        groups: Two groups to compare alone, chosen before the data are seen; None: all.
        level: Error rate of all statements together.
        scope: Of several trainings, whether to speak of these "models" or of "trainings" like these (needs three).
            None: of trainings where there are three.
    """
    checked_scalar("scope", scope)
    checked_kind("run", run, Trajectory, A_RUN)
    checked_share("level", level)
    checked_question(question)
    if scope not in (None, "models", "trainings"):
        raise ValueError(f'`scope` should be "models" or "trainings". Found scope = {scope!r}.')
    question = question if question is not None else asked_of(run)
    run = _as_asked(revived(run), question)
    names = _names(run, curves, question)
    first = run[names[0]]
    seeds = first.sizes.get("seed", 1)
    if scope == "trainings" and seeds < FEWEST_SEEDS:
        raise ValueError(
            f"At least {FEWEST_SEEDS} trainings are needed to speak of trainings like these. Found {seeds}."
        )
    pair = None if groups is None else the_pair(first, groups)
    judged = judgement(run, names, pair, level, scope if seeds > 1 else None)
    exact = all("seed" not in run[name].dims and exact_curve(run, name) is not None for name in names)
    declared = judged.declared
    if exact and not curves and (question is None or question.asked not in names):
        declared = "loss" if "loss" in names else names[0]
    return Leaders(
        differences=judged.differences,
        curves=tuple(names),
        groups=tuple(pair or groups_of(first)),
        level=judged.level,
        scope=judged.scope,
        basis="exact" if exact else judged.basis,
        evaluations=judged.evaluations,
        clock=run.clock,
        reasons=judged.reasons,
        notes=judged.notes,
        one_of=1 if pair is None else comb(len(groups_of(first)), 2),
        asked=tuple(dict.fromkeys(curves)) or (() if question is None else question.curves),
        question=question,
        run=run,
        curve=declared,
        could_be_worst=judged.could_be_worst,
    )


def _as_asked(run: Trajectory, question: Question | None) -> Trajectory:
    """The run with the directions that the question gives: to be selected for a burden is no advantage."""
    if question is None:
        return run
    turned = {
        name: curve if question.better(name) is None else curve.assign_attrs(better=question.better(name))
        for name, curve in run.items()
    }
    return run.replace(turned, run.evaluate)


def asked_of(run: Trajectory) -> Question | None:
    """The question that the held-out data of a run or forecast carry; None if they carry none."""
    stored = described_held_out(run).get("question")
    return Question.from_json(stored) if isinstance(stored, Mapping) else None


def _names(run: Trajectory, curves: tuple[str, ...], question: Question | None) -> list[str]:
    """The curves to judge, checked: the declared rate, then the other rates, and the loss last."""
    if not curves:
        asked = () if question is None else question.curves
        order = (*asked, "error", "squared_error", *(name for name in JUDGED if name != "loss"), "loss")
        curves = tuple(name for name in order if name in run and "group" in run[name].dims)
        if not curves:
            raise ValueError(f"There is none of the curves {', '.join(JUDGED)} with groups: name the curves to judge.")
    for name in dict.fromkeys(curves):
        values = run[name]
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


def _card(run: Trajectory) -> str:
    """The headline of a run as HTML; nothing where there is nothing to compare, or too much to wait for."""
    if sum(values.size for values in run.points.values()) > MOST_SHOWN:
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return text_html(str(leaders(run).headline))
    except Exception:  # what only shows a run must not fail, whatever its curves hold
        return ""


NotebookCard.of = staticmethod(_card)
