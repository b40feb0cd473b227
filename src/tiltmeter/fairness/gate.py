"""bias_gate: test whether a gap between groups is larger than allowed at the end of a run."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from tiltmeter.leaders.judgement import Basis, Judgement, judgement
from tiltmeter.names import better_of
from tiltmeter.pairs import groups_of
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import NotebookText

#: Without other errors, the scatter over seeds is used from this many seeds on.
FEWEST_SEEDS = 3
#: The source of the limits, in words.
BASES: dict[Basis, str] = {
    "points": "points looked at",
    "standard errors": "recorded standard errors",
    "seeds": "scatter over seeds",
}
#: Sources of curves without noise.
EXACT = ("theory", "moments")


@dataclass(frozen=True)
class GapFound:
    """Value of `pair[0]` minus value of `pair[1]` at the last evaluation, with limits that hold for all pairs
    together."""

    pair: tuple[Hashable, Hashable]
    gap: float
    low: float
    high: float

    @property
    def at_least(self) -> float:
        """The lower confidence limit of the size of the gap."""
        return max(self.low, -self.high, 0.0)

    @property
    def at_most(self) -> float:
        """The upper confidence limit of the size of the gap."""
        return max(abs(self.low), abs(self.high))

    @property
    def sentence(self) -> str:
        """Who is lower and by how much, with limits."""
        lower, higher = self.pair if self.gap < 0 else self.pair[::-1]
        low, high = (f"{size:.4f}" for size in sorted((abs(self.low), abs(self.high))))
        limits = "" if low == high else f", between {low} and {high}"
        return f"{lower} is lower than {higher} by {abs(self.gap):.4f}{limits}"


@dataclass(frozen=True)
class BiasGate(NotebookText):
    """The result of `bias_gate`, for every pair of groups."""

    curve: str
    allowed: float
    level: float
    time: float
    clock: str
    basis: str
    gaps: tuple[GapFound, ...]

    @property
    def shown(self) -> tuple[GapFound, ...]:
        """Pairs whose gap is shown to be larger than allowed, the largest first."""
        return tuple(sorted((g for g in self.gaps if g.at_least > self.allowed), key=lambda g: -g.at_least))

    @property
    def passed(self) -> bool:
        """Whether no gap is shown to be larger than allowed; a run with too few points to show anything passes."""
        return not self.shown

    @property
    def within(self) -> bool:
        """Whether every gap is shown to be within what is allowed; a run with too few points is not."""
        return all(one.at_most <= self.allowed for one in self.gaps)

    def __str__(self) -> str:
        where = f"{self.curve} at {self.clock} {self.time:.6g}"
        if self.shown:
            said = [g.sentence for g in self.shown]
            return f"Shown: a gap in {where} above {self.allowed:g}. {'; '.join(said)} ({self._how()})."
        worst = max(self.gaps, key=lambda g: g.at_most)
        if self.within:
            return f"Ruled out: no gap in {where} is above {self.allowed:g} ({self._how()})."
        return (
            f"Not shown: a gap in {where} above {self.allowed:g}. It could be up to {worst.at_most:.4f}, for "
            f"{_pair(worst)} ({self._how()})."
        )

    def _how(self) -> str:
        return self.basis if self.basis == "exact values" else f"{self.basis}, all pairs together at {self.level:.0%}"


def bias_gate(trajectory: Trajectory, curve: str, allowed: float, level: float = 0.05) -> BiasGate:
    """Test whether the gap between any two groups in `curve` at the last evaluation is larger than `allowed`.

    >>> from tiltmeter import predict
    >>> from tiltmeter.problem import cases
    >>> print(bias_gate(predict(*cases.centred_crossing(), curves=("loss",)), "loss", 0.05))
    Shown: a gap in loss at t 200 above 0.05. + is lower than - by 0.2077 (exact values).

    The test is that of `leaders` for the last evaluation alone, over all pairs together. It uses the points that a
    probe kept, or points and seeds if there are several seeds. Without kept points it uses recorded standard errors or
    the scatter over seeds, with Bonferroni's correction. "Not shown" does not mean that there is no such gap: more
    points or seeds may be needed to show it. `within` asks the stricter question, whether such a gap is ruled out. The
    limits are for the last evaluation only; an evaluation chosen because of its gap would need wider limits."""
    if not 0 < level < 1:
        raise ValueError(f"`level` should lie strictly between 0 and 1. Found level = {level}.")
    if not 0 <= allowed < math.inf:
        raise ValueError(f"`gap` should not be negative. Found gap = {allowed}.")
    values = trajectory[curve]
    extra = [str(dim) for dim in values.dims if dim not in ("time", "group", "seed")]
    if "group" not in values.dims or values.sizes["group"] < 2 or extra:
        over = f"dimensions {', '.join(map(str, values.dims))}"
        raise ValueError(f"A gate needs a curve of at least two groups over time. Found {curve!r} with {over}.")
    if not values.sizes["time"]:
        raise ValueError(f"A gate needs at least one evaluation. Found none in {curve!r}.")
    if trajectory.diverged is not None:
        raise ValueError("A run that diverged has no trained model to judge.")
    last = values.isel(time=-1)
    empty = [str(g) for g in groups_of(values) if not np.isfinite(last.sel(group=g)).all()]
    if empty:
        raise ValueError(
            f"Every group should have a value of {curve} at the last evaluation. Found none of {', '.join(empty)}."
        )
    judged = judgement(_at_the_end(trajectory, curve), [curve], level=level, every_pair=True)
    seeds = values.sizes.get("seed", 1)
    if not judged.differences or not all(one.judged for one in judged.differences):
        why = "; ".join(f"{name}: {reason}" for name, reason in judged.reasons.items()) or "nothing is known of it"
        raise ValueError(f"A gate needs to know how certain {curve} is, for every group. Found that {why}.")
    exact = judged.basis == "values" and trajectory.origin.source in EXACT
    if not exact and (judged.basis == "values" or (judged.basis == "seeds" and seeds < FEWEST_SEEDS)):
        raise ValueError(
            f"A gate needs to know how certain {curve} is: points kept by a probe, standard errors {curve}_se, or "
            f"at least {FEWEST_SEEDS} seeds. Found {seeds} {'seed' if seeds == 1 else 'seeds'} and no {curve}_se."
        )
    found = tuple(
        GapFound(one.pair, *(float(part[-1]) for part in (one.gap, one.lower, one.upper))) for one in judged.differences
    )
    return BiasGate(curve, allowed, level, float(last.coords["time"]), trajectory.clock, _basis(judged, seeds), found)


def _at_the_end(trajectory: Trajectory, curve: str) -> Trajectory:
    """The last evaluation alone; of a curve that is neither better high nor low only the size of its gaps is asked."""
    names = [name for name in (curve, f"{curve}_se") if name in trajectory]
    last = {name: trajectory[name].isel(time=[-1]) for name in names}
    if better_of(curve, last[curve]) == "neither":
        last[curve] = last[curve].assign_attrs(better="lower")
    return trajectory.replace(last)


def _basis(judged: Judgement, seeds: int) -> str:
    if judged.basis == "values":
        return "exact values"
    scope = {"run": "this run", "runs": "these runs", "recipe": f"the recipe, from {seeds} seeds"}[judged.scope]
    return f"{scope}, {BASES[judged.basis]}"


def _pair(found: GapFound) -> str:
    return f"{found.pair[0]} and {found.pair[1]}"
