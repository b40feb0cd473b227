"""bias_gate: whether a gap between groups at the end of a run is larger than allowed, within it, or not settled."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tiltmeter.arguments import checked_share
from tiltmeter.leaders.headline import at, capital, term
from tiltmeter.leaders.judgement import Basis, Judgement, judgement
from tiltmeter.leaders.points import kept_points
from tiltmeter.names import better_of
from tiltmeter.pairs import groups_of
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import NotebookText, group_name

#: Without other errors, the scatter over seeds is used from this many seeds on.
FEWEST_SEEDS = 3
#: The source of the limits, in words.
BASES: dict[Basis, str] = {
    "points": "held-out points",
    "standard errors": "recorded standard errors",
    "seeds": "scatter over seeds",
}
#: Sources of curves without noise.
EXACT = ("theory", "moments")


@dataclass(frozen=True)
class Gap:
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
        lower, higher = map(group_name, self.pair if self.gap < 0 else self.pair[::-1])
        low, high = (f"{size:.2g}" for size in sorted((abs(self.low), abs(self.high))))
        limits = "" if low == high else f" ({low} to {high})"
        return f"that of {lower} is lower than that of {higher} by {abs(self.gap):.2g}{limits}"


@dataclass(frozen=True)
class BiasGate(NotebookText):
    """The result of `bias_gate`, for every pair of groups.

    `verdict` is "gap" (one is clearly larger than allowed), "within" (every gap is clearly within what is allowed) or
    "inconclusive": the held-out points cannot tell. `counts` are the points that count in the curve, where they are
    known; `left_out` are groups with too few of them.
    """

    curve: str
    allowed: float
    level: float
    time: float
    clock: str
    basis: str
    gaps: tuple[Gap, ...]
    counts: Mapping[Hashable, int] = field(default_factory=dict)
    left_out: tuple[Hashable, ...] = ()

    @property
    def verdict(self) -> Literal["gap", "within", "inconclusive"]:
        if self.too_large:
            return "gap"
        return "within" if all(one.at_most <= self.allowed for one in self.gaps) else "inconclusive"

    @property
    def too_large(self) -> tuple[Gap, ...]:
        """Pairs whose gap is clearly larger than allowed, the largest first."""
        return tuple(sorted((g for g in self.gaps if g.at_least > self.allowed), key=lambda g: -g.at_least))

    def __str__(self) -> str:
        # One table of predictions has no steps.
        name, when = term(self.curve), "" if self.time == 0 else f" at {at(self.clock, self.time)}"
        if self.verdict == "gap":
            rest = "; ".join(one.sentence for one in self.too_large)
            claim = f"Gap: the {name} differs by more than {self.allowed:g}{when}: {rest}."
        elif self.verdict == "within":
            claim = f"Within: no gap in {name} is above {self.allowed:g}{when}."
        else:
            worst = max(self.gaps, key=lambda one: one.at_most)
            claim = (
                f"Inconclusive: the gap in {name} may be as large as {worst.at_most:.2g}, the limit is {self.allowed:g}"
                f"{self._few(worst)}."
            )
        return f"{claim}\n{self._how()}"

    def _few(self, gap: Gap) -> str:
        """How many points of the smaller group there are."""
        if not all(group in self.counts for group in gap.pair):
            return ""
        fewest = min(gap.pair, key=lambda group: self.counts[group])
        noun = {"tpr": "positives", "fpr": "negatives"}.get(self.curve, "points")
        return f"; {self.counts[fewest]:,} {noun} of {group_name(fewest)} held out"

    def _how(self) -> str:
        left = ""
        if self.left_out:
            left = f" Not judged, too few points: {', '.join(map(group_name, self.left_out))}."
        if self.basis == "exact values":
            return f"Exact values.{left}"
        return f"{capital(self.basis)}; all pairs together, {100 * self.level:g} % error rate.{left}"


def bias_gate(trajectory: Trajectory, curve: str, allowed: float, level: float = 0.05) -> BiasGate:
    """Test whether the gap between any two groups in `curve` at the last evaluation is larger than `allowed`.

    >>> from tiltmeter import predict
    >>> from tiltmeter.theory import cases
    >>> print(bias_gate(predict(*cases.centred_crossing(), curves=("loss",)), "loss", 0.05))
    Gap: the loss differs by more than 0.05 at t = 200: that of + is lower than that of - by 0.21.
    Exact values.

    The test is that of `leaders` for the last evaluation alone, over all pairs together. It uses the points that a
    probe kept, or points and seeds if there are several seeds. Without kept points it uses recorded standard errors or
    the scatter over seeds, with Bonferroni's correction. "Inconclusive" means that
    neither such a gap nor its absence is clear: more points or seeds are needed. The limits are for the last evaluation
    only; an evaluation chosen because of its gap would need wider limits."""
    checked_share("level", level)
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
    known = [one for one in judged.differences if one.judged]
    if not known:
        why = "; ".join(f"{name}: {reason}" for name, reason in judged.reasons.items()) or "nothing is known of it"
        raise ValueError(f"A gate needs to know how certain {curve} is, for every group. Found that {why}.")
    exact = judged.basis == "values" and trajectory.origin.source in EXACT
    if not exact and (judged.basis == "values" or (judged.basis == "seeds" and seeds < FEWEST_SEEDS)):
        raise ValueError(
            f"A gate needs to know how certain {curve} is: points kept by a probe, standard errors {curve}_se, or "
            f"at least {FEWEST_SEEDS} seeds. Found {seeds} {'seed' if seeds == 1 else 'seeds'} and no {curve}_se."
        )
    gaps = tuple(Gap(one.pair, *(float(part[-1]) for part in (one.gap, one.lower, one.upper))) for one in known)
    in_family = {group for one in known for group in one.pair}
    left_out = tuple(group for group in groups_of(values) if group not in in_family)
    time = float(last.coords["time"])
    kept = kept_points(trajectory)
    counts = {} if kept is None else kept.counts(curve)
    return BiasGate(curve, allowed, level, time, trajectory.clock, _basis(judged, seeds), gaps, counts, left_out)


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
    scope = {"run": "this run", "runs": "these runs", "recipe": f"these settings, from {seeds} seeds"}[judged.scope]
    return f"{scope}, {BASES[judged.basis]}"
