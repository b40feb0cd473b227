"""Phases: the intervals between crossings, with leader, size of the gap, and its cause."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np

from tiltmeter.analysis.crossings import Crossings, crossings, estimated
from tiltmeter.analysis.difference import Difference
from tiltmeter.analysis.exact import exact_curve, linear_theory_of, revived
from tiltmeter.analysis.overall_phases import exact_intervals, measured_intervals
from tiltmeter.analysis.pairs import AskedPair, Pair, groups_of, the_pair
from tiltmeter.analysis.statements import Standing
from tiltmeter.names import NOBODY
from tiltmeter.notebook_text import NotebookText
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.visible_text import group_name

if TYPE_CHECKING:
    from tiltmeter.problem.fixed import Fixed
    from tiltmeter.problem.full_batch import Training
    from tiltmeter.problem.mixture import Mixture

#: Times at which drivers are averaged within a phase.
LOOKS = 64


@dataclass(frozen=True)
class Phase:
    """One interval of training with one leader, or with "" if no difference is shown.

    `size` is the mean absolute gap, over log time for theory. For a measured run, the difference is shown to be at most
    `bound` throughout the interval. For theory, `driver` names the cause of the gap, and `contributions` holds the mean
    Shapley value of each driver over log time; otherwise they are None and empty.
    """

    start: float
    stop: float
    leader: Hashable
    size: float
    driver: str | None = None
    reason: str | None = None
    contributions: Mapping[str, float] = field(default_factory=dict)
    bound: float | None = None


class Phases(tuple[Phase, ...], NotebookText):
    """The phases in order of time, and the crossings between them; as text, one sentence.

    `pair` is None where several groups were asked about: a leader is then ahead of all others.
    """

    curve: str
    pair: Pair | None
    clock: str
    crossings: Crossings

    def __new__(
        cls, found: Iterable[Phase], curve: str, pair: Pair | None, clock: str, crossings: Crossings | None = None
    ) -> Self:
        self = super().__new__(cls, tuple(found))
        self.curve, self.pair, self.clock = curve, pair, clock
        self.crossings = Crossings((), "") if crossings is None else crossings
        return self

    @property
    def standing(self) -> Standing | None:
        """The bands behind the phases; None for exact theory."""
        return self.crossings.standing

    def __str__(self) -> str:
        if self.standing is not None and (self.standing.basis != "values" or not self.standing.differences):
            return str(self.standing) if self.pair is not None else f"{self._overall()}\n{self.standing}"
        if not self:
            return self._nobody()
        because = [f" ({phase.reason})" if phase.reason else "" for phase in self]
        who = ["nobody" if phase.leader == NOBODY else group_name(phase.leader) for phase in self]
        if len(self) == 1:
            return f"{who[0]} leads throughout{because[0]}."
        parts = [f"{who[0]} leads until {self.clock} = {self[0].stop:.4g}{because[0]}"]
        for phase, name, why in zip(self[1:-1], who[1:-1], because[1:-1], strict=True):
            parts.append(f"then {name} until {self.clock} = {phase.stop:.4g}{why}")
        return ", ".join([*parts, f"then {who[-1]}{because[-1]}"]) + "."

    def _nobody(self) -> str:
        if self.pair is None:
            return "No group is shown to be ahead of all others at any look."
        return f"Neither {group_name(self.pair[0])} nor {group_name(self.pair[1])} is ever shown to lead."

    def _overall(self) -> str:
        """Who is shown to be ahead of all others, and when."""
        shown = [
            f"{group_name(phase.leader)} from {self.clock} {phase.start:.4g} to {phase.stop:.4g}"
            for phase in self
            if phase.leader != NOBODY
        ]
        return f"Shown ahead of all others: {', '.join(shown)}." if shown else self._nobody()


def phases(trajectory: Trajectory, curve: str = "loss", pair: AskedPair | None = None, level: float = 0.05) -> Phases:
    """Return the intervals between changes of leader: leader, size and, for the loss of exact theory, its cause.

    >>> from tiltmeter import predict
    >>> from tiltmeter.problem import cases
    >>> print(phases(predict(*cases.centred_crossing())))
    - leads until t = 5.643 (larger variance), then + (more data).
    >>> [phase.driver for phase in phases(predict(*cases.three_phases()))]
    ['shift', 'variance', 'representation']

    A phase of a measured run has a leader only if one is shown, by a band that holds at all looks together with
    probability 1 - `level` (see `standing`). The looks in between are phases without a leader.

    Of three groups or more, the leader is the one that is ahead of all others, and `size` its lead over the next. What
    causes a gap is told of two groups: name them, as in pair=("north", "south").
    """
    trajectory = revived(trajectory)
    if pair is None and len(groups_of(trajectory[curve])) > 2:
        return _overall(trajectory, curve, level)
    chosen = the_pair(trajectory[curve], pair)
    found = crossings(trajectory, curve, chosen, level)
    if found.standing is not None:
        differences = found.standing.differences
        measured = _measured(differences[0]) if differences else ()
        return Phases(measured, curve, chosen, trajectory.clock, found)
    times = trajectory[curve].coords["time"].values
    times = times[times > 0]
    if found.first_leader == NOBODY or times.size == 0:
        return Phases((), curve, chosen, trajectory.clock, found)
    edges = list(pairwise([float(times[0]), *(crossing.time for crossing in found), float(times[-1])]))
    sizes = _sizes(trajectory, curve, chosen, edges)
    theory = linear_theory_of(trajectory) if curve == "loss" and trajectory.clock == "t" else None
    if theory is not None and getattr(theory[1], "steered", False):
        theory = None  # a law reacts to the gap itself, so drivers cannot be separated
    known = [None] * len(edges) if theory is None else _contributions(theory, chosen, edges)
    segments = []
    for (low, high), leader, size, parts in zip(edges, found.leaders, sizes, known, strict=True):
        if theory is None or parts is None:
            segments.append(Phase(low, high, leader, size))
            continue
        means, direction = parts
        driver = max(means, key=lambda name: direction * means[name])
        other = chosen[1] if leader == chosen[0] else chosen[0]
        segments.append(Phase(low, high, leader, size, driver, reason(driver, theory[0], leader, other), means))
    return Phases(segments, curve, chosen, trajectory.clock, found)


def _overall(trajectory: Trajectory, curve: str, level: float) -> Phases:
    """The phases of several groups: who is ahead of all others."""
    values = trajectory[curve]
    found = crossings(trajectory, curve, level=level)
    exact = exact_curve(trajectory, curve) if found.standing is None else None
    if exact is not None:
        intervals = exact_intervals(values, found, exact)
    else:
        assert found.standing is not None
        intervals = measured_intervals(values, found.standing)
    parts = [Phase(one.start, one.stop, one.leader, one.size) for one in intervals]
    return Phases(parts, curve, None, trajectory.clock, found)


def _sizes(trajectory: Trajectory, curve: str, pair: Pair, edges: list[tuple[float, float]]) -> list[float]:
    """The mean absolute gap of every phase of an exact curve, over log time."""
    from tiltmeter.analysis.drivers import mean_over_log_time

    exact = exact_curve(trajectory, curve)
    assert exact is not None

    def size(low: float, high: float) -> float:
        if not high > low:
            return 0.0
        values = exact(np.geomspace(low, high, LOOKS))
        return mean_over_log_time(abs(values.sel(group=pair[0], drop=True) - values.sel(group=pair[1], drop=True)))

    return [size(low, high) for low, high in edges]


def _contributions(
    theory: tuple[Mixture, Training, Fixed | None], pair: Pair, edges: list[tuple[float, float]]
) -> list[tuple[dict[str, float], float] | None]:
    """Return the mean contribution of each driver in every phase, and the sign of the mean gap."""
    looks = [np.geomspace(low, high, LOOKS) if high > low else np.empty(0) for low, high in edges]
    if not any(at.size for at in looks):
        return [None] * len(edges)
    from tiltmeter.analysis.drivers import DRIVERS, drivers, mean_over_log_time

    problem, training, data = theory
    split = drivers(problem, training, np.unique(np.concatenate(looks)), pair, data)

    def means(at: np.ndarray) -> tuple[dict[str, float], float]:
        parts = {name: mean_over_log_time(split[name].sel(time=at)) for name in (*DRIVERS, "rest")}
        return parts, float(np.sign(mean_over_log_time(split["loss_gap"].sel(time=at))))

    return [means(at) if at.size else None for at in looks]


def _measured(difference: Difference) -> tuple[Phase, ...]:
    """Return the stretches of looks with one result, extended to meet; nothing if nobody is ever shown to lead."""
    if not difference.sign.any():
        return ()
    stretches = difference.stretches
    edges = [stretches[0].first]
    for one, two in pairwise(stretches):
        if NOBODY in (one.leader, two.leader):
            # A leader is shown only at its own looks; the undecided interval begins and ends there.
            edges.append(one.last if two.leader == NOBODY else two.first)
        else:
            edges.append(estimated(difference, one.last, two.first))
    edges.append(stretches[-1].last)
    found = []
    for (low, high), stretch in zip(pairwise(edges), stretches, strict=True):
        inside = (difference.times >= stretch.first) & (difference.times <= stretch.last)
        gaps = np.abs(difference.gap[inside])
        gaps = gaps[np.isfinite(gaps)]
        size = float(gaps.mean()) if gaps.size else float("nan")
        found.append(Phase(low, high, stretch.leader, size, bound=stretch.bound))
    return tuple(found)


def reason(driver: str, problem: Mixture, leader: Hashable, other: Hashable) -> str:
    """Return a driver in words, from the view of the leader."""
    if driver == "shift":
        return "shift and label imbalance"
    if driver == "rest":
        return "teachers, start or loss weights"
    numbers = problem.variance if driver == "variance" else problem.weight
    ahead, behind = (float(numbers.sel(group=group)) for group in (leader, other))
    if driver == "variance":
        return "larger variance" if ahead > behind else "smaller variance"
    return "more data" if ahead > behind else "less data"
