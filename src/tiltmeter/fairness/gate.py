"""gate: whether a gap between groups at the end of a run is larger than allowed, within it, or cannot be told."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tiltmeter.arguments import A_RUN, checked_kind, checked_number, checked_share
from tiltmeter.leaders.difference import ALL, Difference
from tiltmeter.leaders.headline import RATES, at, gap_size, in_points, more_points, plural_term, subject
from tiltmeter.leaders.judgement import SHARES, judgement
from tiltmeter.leaders.leaders import asked_of
from tiltmeter.leaders.seed_bands import FEWEST_SEEDS
from tiltmeter.names import better_of
from tiltmeter.pairs import groups_of
from tiltmeter.record.labelled import label_to_json
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import NotebookText, group_name

Verdict = Literal["passes", "fails", "cannot tell"]
#: What is held against the allowed gap: both limits, the upper limit alone, or what was measured.
Judge = Literal["limits", "strict", "measured"]
#: Sources of curves without noise.
EXACT = ("theory", "moments")


@dataclass(frozen=True)
class Gate(NotebookText):
    """The answer of `gate`: it "passes", "fails", or "cannot tell" from these held-out points.

    Args:
        verdict: The answer.
        curve: Curve in which groups were compared.
        allowed: Largest gap that is allowed.
        judge: What was held against it: both "limits", the upper one alone ("strict"), or the "measured" gap.
        level: How often limits may be wrong, over all groups together.
        gaps: Two groups, or each of more against all others, at the last evaluation.
        left_out: Groups with too few points to be judged; they do not govern the answer.
    """

    verdict: Verdict
    curve: str
    allowed: float
    judge: Judge
    level: float
    gaps: tuple[Difference, ...]
    left_out: tuple[Hashable, ...] = ()

    @property
    def governs(self) -> Difference:
        """The difference that decides: clearly larger than allowed before perhaps larger, then by size."""
        if self.judge == "measured":
            return max(self.gaps, key=lambda one: abs(float(one.gap[-1])))
        return max(self.gaps, key=lambda one: (_at_least(one) > self.allowed, _at_most(one)))

    @property
    def passed(self) -> bool:
        """Whether the gap is within what is allowed."""
        return self.verdict == "passes"

    def __str__(self) -> str:
        one = self.governs
        a, b = (subject(group)[0] if group != ALL else "all others" for group in one.pair)
        time = float(one.times[-1])
        when = f" at {at(one.clock, time)}" if time else ""  # one table of predictions has no steps
        gap, low, high = (abs(float(one.gap[-1])), *_limits(one))
        exact = math.isclose(low, high, abs_tol=1e-9)
        between = "" if exact else f", {in_points(one.curve, low)} to {in_points(one.curve, high)}"
        allowed = in_points(one.curve, self.allowed, unit=True)
        verdict = {"passes": "Passes", "fails": "Fails", "cannot tell": "Cannot tell"}[self.verdict]
        rates = plural_term(self.curve)
        claim = f"{verdict}: the {rates} of {a} and {b} are {gap_size(one, gap)} apart{between}{when}."
        rest = [claim, f"Allowed: {allowed}{_HELD[self.judge]}."]
        if self.verdict == "cannot tell":
            rest.append(self._settle(one))
        if self.left_out:
            rest.append(f"Too few to judge: {', '.join(map(group_name, self.left_out))}.")
        if not exact:
            rest.append(f"At most {100 * self.level:g} of 100 such answers are wrong.")
        return " ".join(filter(None, rest))

    def _settle(self, one: Difference) -> str:
        """How many more points would tell, if the gap stayed as it is."""
        room = abs(abs(float(one.gap[-1])) - self.allowed)
        half = float(one.upper[-1] - one.lower[-1]) / 2.0
        return more_points(one, half, room, "settle it") if room else ""

    def to_json(self) -> dict[str, Any]:
        """All of it as plain JSON."""
        gaps = [
            {
                "pair": [label_to_json(group) for group in one.pair],
                **{name: float(getattr(one, part)[-1]) for name, part in _PARTS.items()},
            }
            for one in self.gaps
        ]
        told = {name: getattr(self, name) for name in ("verdict", "curve", "allowed", "judge", "level", "passed")}
        return {**told, "sentence": str(self), "gaps": gaps, "left_out": list(map(label_to_json, self.left_out))}


_PARTS = {"gap": "gap", "low": "lower", "high": "upper"}
_HELD: dict[Judge, str] = {
    "limits": "",
    "strict": ", by the upper limit",
    "measured": ", by the measured gap alone",
}


def _limits(one: Difference) -> tuple[float, float]:
    """The limits of a gap, of which the measured one is positive."""
    ends = (float(one.lower[-1]), float(one.upper[-1]))
    return ends if one.gap[-1] >= 0 else (-ends[1], -ends[0])


def _at_least(one: Difference) -> float:
    return max(float(one.lower[-1]), -float(one.upper[-1]), 0.0)


def _at_most(one: Difference) -> float:
    return max(abs(float(one.lower[-1])), abs(float(one.upper[-1])))


def gate(run: Trajectory, gap: float, curve: str | None = None, level: float = 0.05, judge: Judge = "limits") -> Gate:
    """Whether groups are further apart at the last evaluation than `gap`.

    >>> import tiltmeter as tm
    >>> print(gate(tm.predict(*tm.theory.cases.centred_crossing(), curves=("loss",)), 0.05, "loss"))
    Fails: the losses of group + and group - are 0.21 apart at t = 200. Allowed: 0.05.

    The limits are those of `leaders`: two groups are compared with each other, of more each with all others together.
    The run fails where a lower limit exceeds the allowed gap, and passes where all upper limits are within it. Else the
    gate cannot tell: more points or trainings are needed. A strict gate judges the upper limit alone, so what is not
    clear fails; a measured one judges the gap that was measured, whatever its limits. Groups with fewer than 20 points
    do not govern; they are named. The limits are for the last evaluation: one chosen for its gap needs wider ones.

    Args:
        run: Run, or table of predictions (`tm.predictions.run`), to judge.
        gap: Largest gap that is allowed, as a share: 0.05 is 5 points.
        curve: Curve in which groups are compared; None: the one that the question of the data asks for, else error.
        level: How often limits may be wrong, over all groups together.
        judge: What is held against the allowed gap: both "limits", the upper one ("strict"), or the "measured" gap.
    """
    checked_number("gap", gap)
    if curve is not None:
        checked_kind("curve", curve, str, "the name of a curve")
    checked_kind("judge", judge, str, "one of limits, strict and measured")
    checked_kind("run", run, Trajectory, A_RUN)
    checked_share("level", level)
    if not 0 <= gap < math.inf:
        raise ValueError(f"`gap` should not be negative. Found gap = {gap}.")
    if judge not in _HELD:
        raise ValueError(f"`judge` should be one of {', '.join(_HELD)}. Found judge = {judge!r}.")
    if curve is None:
        question = asked_of(run)
        wanted = "" if question is None else question.asked
        curve = next((name for name in (wanted, "error", "squared_error") if name in run), "loss")
    if curve in RATES and gap > 1:
        raise ValueError(f"`gap` is a share where rates are compared: 0.05 is 5 points. Found gap = {gap:g}.")
    _check(run, curve)
    several = run[curve].sizes["time"] > 1
    # The limits of the last evaluation are those that `leaders` gives it, which asks about the path as well.
    share = SHARES.end / SHARES.handed_on if several else 1.0
    judged = judgement(_at_the_end(run, curve), [curve], level=level * share)
    gaps = tuple(one for one in judged.differences if one.judged)
    if not gaps:
        why = "; ".join(f"{name}: {reason}" for name, reason in judged.reasons.items()) or "nothing is known of it"
        raise ValueError(f"A gate needs to know how certain {curve} is, for every group. Found that {why}.")
    exact = judged.basis == "values" and run.origin.source in EXACT
    seeds = run[curve].sizes.get("seed", 1)
    if not exact and (judged.basis == "values" or (judged.basis == "seeds" and seeds < FEWEST_SEEDS)):
        raise ValueError(
            f"A gate needs to know how certain {curve} is: points kept by a probe, standard errors {curve}_se, or "
            f"at least {FEWEST_SEEDS} seeds. Found {seeds} {'seed' if seeds == 1 else 'seeds'} and no {curve}_se."
        )
    compared = {group for one in gaps for group in one.pair}
    members = {part for group in compared if isinstance(group, tuple) for part in group}
    left = [group for group in groups_of(run[curve]) if not ({group, *_parts(group)} & (compared | members))]
    few = {name.partition(" of ")[2] for name in judged.reasons}
    left_out = tuple(group for group in groups_of(run[curve]) if group in left or group_name(group) in few)
    return Gate(_verdict(gaps, gap, judge), curve, gap, judge, level, gaps, left_out)


def _parts(group: Hashable) -> tuple[Hashable, ...]:
    return group if isinstance(group, tuple) else ()


def _verdict(gaps: tuple[Difference, ...], allowed: float, judge: Judge) -> Verdict:
    if judge == "measured":
        return "passes" if all(abs(one.gap[-1]) <= allowed for one in gaps) else "fails"
    if any(_at_least(one) > allowed for one in gaps):
        return "fails"
    if all(_at_most(one) <= allowed for one in gaps):
        return "passes"
    return "fails" if judge == "strict" else "cannot tell"


def _check(run: Trajectory, curve: str) -> None:
    """Refuse what has no gap at the end."""
    values = run[curve]
    extra = [str(dim) for dim in values.dims if dim not in ("time", "group", "seed")]
    if "group" not in values.dims or values.sizes["group"] < 2 or extra:
        over = f"dimensions {', '.join(map(str, values.dims))}"
        raise ValueError(f"A gate needs a curve of at least two groups over time. Found {curve!r} with {over}.")
    if not values.sizes["time"]:
        raise ValueError(f"A gate needs at least one evaluation. Found none in {curve!r}.")
    if run.diverged is not None:
        raise ValueError("A run that diverged has no trained model to judge.")
    last = values.isel(time=-1)
    empty = [str(g) for g in groups_of(values) if not np.isfinite(last.sel(group=g)).all()]
    if empty:
        raise ValueError(
            f"Every group should have a value of {curve} at the last evaluation. Found none of {', '.join(empty)}."
        )


def _at_the_end(run: Trajectory, curve: str) -> Trajectory:
    """The last evaluation alone; of a curve that is neither better high nor low only the size of its gaps is asked."""
    names = [name for name in (curve, f"{curve}_se") if name in run]
    last = {name: run[name].isel(time=[-1]) for name in names}
    if better_of(curve, last[curve]) == "neither":
        last[curve] = last[curve].assign_attrs(better="lower")
    return run.replace(last)
