"""Phases: the segments between crossings, who leads in each, by how much, and what drives it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Self

import numpy as np

from tiltmeter.analysis.crossings import crossings
from tiltmeter.analysis.drivers import DRIVERS, drivers, mean_over_log_time
from tiltmeter.analysis.exact import exact_curve, theory_of
from tiltmeter.analysis.pairs import Pair, pair_gap, the_pair
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.record.trajectory import Trajectory

#: Times at which drivers are averaged within a phase.
LOOKS = 64


@dataclass(frozen=True)
class Phase:
    """One stretch of training with one leader.

    `size` is the mean absolute gap over log time. For theory, `driver` names what makes the gap and `contributions`
    holds the mean Shapley value of each driver over log time; elsewhere, and under a law of groups, they are None and
    empty.
    """

    start: float
    stop: float
    leader: Hashable
    size: float
    driver: str | None = None
    reason: str | None = None
    contributions: Mapping[str, float] = field(default_factory=dict)


class Phases(tuple[Phase, ...]):
    """The phases in order of time; as text, one sentence."""

    curve: str
    pair: Pair
    clock: str

    def __new__(cls, found: Iterable[Phase], curve: str, pair: Pair, clock: str) -> Self:
        self = super().__new__(cls, tuple(found))
        self.curve, self.pair, self.clock = curve, pair, clock
        return self

    def __str__(self) -> str:
        if not self:
            return f"Neither {self.pair[0]} nor {self.pair[1]} ever leads beyond doubt."
        because = [f" ({phase.reason})" if phase.reason else "" for phase in self]
        if len(self) == 1:
            return f"{self[0].leader} leads throughout{because[0]}."
        parts = [f"{self[0].leader} leads until {self.clock} = {self[0].stop:.4g}{because[0]}"]
        for phase, why in zip(self[1:-1], because[1:-1], strict=True):
            parts.append(f"then {phase.leader} until {self.clock} = {phase.stop:.4g}{why}")
        return ", ".join([*parts, f"then {self[-1].leader}{because[-1]}"]) + "."


def phases(trajectory: Trajectory, curve: str = "loss", pair: Pair | None = None) -> Phases:
    """Segments between crossings of two groups, each with leader, size and, for the loss of exact theory, its driver.

    >>> from tiltmeter import predict
    >>> from tiltmeter.problem import cases
    >>> print(phases(predict(*cases.centred_crossing())))
    - leads until t = 5.643 (larger variance), then + (more data).
    >>> [phase.driver for phase in phases(predict(*cases.three_phases()))]
    ['shift', 'variance', 'representation']
    """
    chosen = the_pair(trajectory[curve], pair)
    found = crossings(trajectory, curve, chosen)
    times = trajectory[curve].coords["time"].values
    times = times[times > 0]
    theory = theory_of(trajectory) if curve == "loss" and trajectory.clock == "t" else None
    opening = found[0].leader_before if found else _only_leader(trajectory, curve, chosen)
    if opening is None or times.size == 0:
        return Phases((), curve, chosen, trajectory.clock)
    edges = [float(times[0]), *(crossing.time for crossing in found), float(times[-1])]
    leaders = [opening, *(crossing.leader_after for crossing in found)]
    segments = [
        _phase(trajectory, curve, chosen, low, high, leader, theory)
        for (low, high), leader in zip(pairwise(edges), leaders, strict=True)
    ]
    return Phases(segments, curve, chosen, trajectory.clock)


def _only_leader(trajectory: Trajectory, curve: str, pair: Pair) -> Hashable | None:
    from tiltmeter.analysis.pairs import ROUNDING, SURE, leader_sign

    gap, error = pair_gap(trajectory, curve, pair)
    margin = ROUNDING if error is None else SURE * error
    decided = gap.where(abs(gap) > margin).dropna("time").values
    if decided.size == 0:
        return None
    return pair[1] if decided[0] * leader_sign(curve, trajectory[curve]) > 0 else pair[0]


def _phase(
    trajectory: Trajectory,
    curve: str,
    pair: Pair,
    low: float,
    high: float,
    leader: Hashable,
    theory: tuple[Mixture, SGD] | None,
) -> Phase:
    if not high > low:
        return Phase(low, high, leader, 0.0)
    exact = exact_curve(trajectory, curve) if "seed" not in trajectory[curve].dims else None
    if exact is None:
        gap, _ = pair_gap(trajectory, curve, pair)
        inside = gap.sel(time=(gap.time >= low) & (gap.time <= high))
        return Phase(low, high, leader, float(abs(inside).mean()) if inside.size else float("nan"))
    looks = np.geomspace(low, high, LOOKS)
    values = exact(looks)
    size = mean_over_log_time(abs(values.sel(group=pair[0], drop=True) - values.sel(group=pair[1], drop=True)))
    if theory is None or theory[1].steered:
        return Phase(low, high, leader, size)
    problem, sgd = theory
    split = drivers(problem, sgd, looks, pair)
    means = {name: mean_over_log_time(split[name]) for name in (*DRIVERS, "rest")}
    direction = np.sign(mean_over_log_time(split["loss_gap"]))
    driver = max(means, key=lambda name: direction * means[name])
    other = pair[1] if leader == pair[0] else pair[0]
    return Phase(low, high, leader, size, driver, reason(driver, problem, leader, other), means)


def reason(driver: str, problem: Mixture, leader: Hashable, other: Hashable) -> str:
    """A driver in words, as seen from the leader."""
    if driver == "shift":
        return "shift and label imbalance"
    if driver == "rest":
        return "teachers, start or loss weights"
    numbers = problem.variance if driver == "variance" else problem.weight
    ahead, behind = (float(numbers.sel(group=group)) for group in (leader, other))
    if driver == "variance":
        return "larger variance" if ahead > behind else "smaller variance"
    return "more data" if ahead > behind else "less data"
