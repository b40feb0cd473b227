"""Phases: intervals of training with one leader, and the lead changes between them, measured or exact."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import combinations, groupby, pairwise
from typing import NamedTuple

import numpy as np
import xarray as xr

from tiltmeter.leaders.difference import ALL, Difference
from tiltmeter.leaders.exact import exact_curve, maker_of
from tiltmeter.names import NOBODY
from tiltmeter.pairs import Pair, groups_of, leader_sign, resolution
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import NotebookText, group_name

#: An exact curve is evaluated at this many times, so that no crossing between the given times is missed.
TIMES = 512
#: Times at which sizes and drivers are averaged within an exact phase.
TIMES_IN_PHASE = 64


@dataclass(frozen=True)
class Crossing(NotebookText):
    """A lead change between `low` and `high`: exact for theory; else `time` is an estimate in between.

    >>> import tiltmeter as tm
    >>> change = tm.leaders(tm.predict(*tm.theory.cases.centred_crossing()), "loss").changes[0]
    >>> change.leader_before, change.leader_after, round(change.time, 2)
    ('-', '+', 5.64)

    Args:
        time: When the lead changed; an estimate between `low` and `high` unless the theory is exact.
        low: Earliest time.
        high: Latest time.
        pair: The two groups.
        leader_before: Group that led before.
        leader_after: Group that leads after.
    """

    time: float
    low: float
    high: float
    pair: Pair
    leader_before: Hashable
    leader_after: Hashable

    def __str__(self) -> str:
        before, after = group_name(self.leader_before), group_name(self.leader_after)
        exact = self.high - self.low < 1e-6 * abs(self.time)
        when = f"at {self.time:.4g}" if exact else f"between {self.low:.4g} and {self.high:.4g}"
        return f"the lead passes from {before} to {after} {when}"


@dataclass(frozen=True)
class Undecided(NotebookText):
    """An interval in which a measured gap changes sign within its band: it is not clear whether the lead changed."""

    low: float
    high: float
    pair: Pair

    def __str__(self) -> str:
        a, b = map(group_name, self.pair)
        return f"not clear between {self.low:.4g} and {self.high:.4g} whether {a} or {b} leads"


class Cause(NamedTuple):
    """What drives the gap of exact theory in one phase: its name, the same in words, the parts of all drivers."""

    driver: str
    reason: str
    contributions: Mapping[str, float]


@dataclass(frozen=True)
class Phase:
    """One interval of training with one leader, or with "" if no leader is clear.

    >>> import tiltmeter as tm
    >>> phases = tm.leaders(tm.predict(*tm.theory.cases.centred_crossing()), "loss").phases
    >>> [(phase.leader, phase.driver) for phase in phases]
    [('-', 'variance'), ('+', 'representation')]

    Args:
        start: First time of the interval.
        stop: Last time of the interval.
        leader: Group that leads; "": none is clear.
        size: Mean absolute gap, over log time for theory; of several groups, the lead over the next.
        driver: Cause of the gap in the loss of exact theory; None elsewhere.
        reason: The same in words.
        contributions: Mean Shapley value of every driver over log time.
        bound: Largest difference that is not ruled out in the interval, for a measured run.
    """

    start: float
    stop: float
    leader: Hashable
    size: float
    driver: str | None = None
    reason: str | None = None
    contributions: Mapping[str, float] = field(default_factory=dict)
    bound: float | None = None


@dataclass(frozen=True, eq=False)
class Course:
    """How the lead went in one curve: its changes in order of time, who led first and last of each pair, and phases."""

    changes: tuple[Crossing, ...]
    first: Mapping[Pair, Hashable]
    last: Mapping[Pair, Hashable]
    undecided: tuple[Undecided, ...]
    find_phases: Callable[[], tuple[Phase, ...]]
    #: From this time on, all gaps of exact curves are too small to be told apart; None if they never are.
    equal_from: float | None = None

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """The intervals between the changes; computed when asked for, since their drivers take time."""
        return self.find_phases()


def ahead_of_all(leaders: Mapping[Pair, Hashable]) -> Hashable:
    """Return the group that leads in every pair it belongs to; "" if there is none.

    Where groups are compared with the mean of all: the one group that is left if all others are behind the mean.

    >>> ahead_of_all({("a", ALL): "a", ("b", ALL): ALL}), ahead_of_all({("a", ALL): "a", ("b", ALL): "b"})
    ('a', '')
    """
    if any(pair[1] == ALL for pair in leaders):
        possible = [pair[0] for pair, leader in leaders.items() if leader != ALL]
        return possible[0] if len(possible) == 1 else NOBODY
    behind = {group for pair, leader in leaders.items() for group in pair if group != leader}
    ahead = [group for group in dict.fromkeys(leaders.values()) if group != NOBODY and group not in behind]
    return ahead[0] if ahead else NOBODY


def measured_course(curve: xr.DataArray, differences: Sequence[Difference]) -> Course:
    """The course of a measured curve: a leader is clear at each of its evaluations."""
    changes: list[Crossing] = []
    undecided: list[Undecided] = []
    first: dict[Pair, Hashable] = {}
    last: dict[Pair, Hashable] = {}
    for difference in differences:
        for change in difference.changes:
            time = _zero_between(difference, change.low, change.high)
            changes.append(Crossing(time, change.low, change.high, difference.pair, change.before, change.after))
        undecided += _undecided(difference)
        clear = difference.leader[difference.sign != 0]
        first[difference.pair], last[difference.pair] = (clear[0], clear[-1]) if clear.size else (NOBODY, NOBODY)
    changes.sort(key=lambda crossing: crossing.time)
    undecided.sort(key=lambda doubt: doubt.low)
    several = len(differences) != 1 or differences[0].pair[1] == ALL
    phases = partial(_overall_phases, curve, differences) if several else partial(_pair_phases, differences[0])
    return Course(tuple(changes), first, last, tuple(undecided), phases)


def exact_course(trajectory: Trajectory, name: str, pair: Pair | None) -> Course:
    """The course of an exact curve: crossings by root finding, phases with their drivers where they are known."""
    exact = exact_curve(trajectory, name)
    assert exact is not None
    curve = trajectory[name]
    lower_leads = leader_sign(name, curve)
    pairs = [pair] if pair is not None else list(combinations(groups_of(curve), 2))
    changes: list[Crossing] = []
    first: dict[Pair, Hashable] = {}
    last: dict[Pair, Hashable] = {}
    equal: list[float | None] = []
    for a, b in pairs:
        times, sign, refine = _signs(curve, (a, b), exact)
        decided = np.flatnonzero(sign)
        ends = (sign[decided[0]], sign[decided[-1]]) if decided.size else (0.0, 0.0)
        first[a, b], last[a, b] = (_ahead(a, b, end * lower_leads) for end in ends)
        ended = not decided.size or decided[-1] + 1 >= len(times)
        equal.append(None if ended else float(times[decided[-1] + 1]))
        for i, j in pairwise(decided):
            if sign[i] != sign[j]:
                before, after = (_ahead(a, b, sign[k] * lower_leads) for k in (i, j))
                time = refine(times[i], times[j])
                changes.append(Crossing(time, time, time, (a, b), before, after))
    changes.sort(key=lambda crossing: crossing.time)
    starts = [start for start in equal if start is not None]
    since = max(starts) if len(starts) == len(pairs) else None
    if len(pairs) == 1:
        phases = partial(_exact_pair_phases, trajectory, name, pairs[0], first[pairs[0]], changes, exact)
    else:
        phases = partial(_exact_overall_phases, curve, changes, exact)
    return Course(tuple(changes), first, last, (), phases, since)


def _zero_between(difference: Difference, low: float, high: float) -> float:
    """Return where the measured gap passes through zero for the last time between two evaluations."""
    inside = (difference.times >= low) & (difference.times <= high) & np.isfinite(difference.gap)
    times, gap = difference.times[inside], difference.gap[inside]
    change = int(np.flatnonzero(np.sign(gap[:-1]) != np.sign(gap[-1]))[-1])
    share = gap[change] / (gap[change] - gap[change + 1])
    return float(times[change] + share * (times[change + 1] - times[change]))


def _undecided(difference: Difference) -> list[Undecided]:
    """Return changes of sign that no pair of evaluations with different leaders encloses."""
    sign, times = difference.sign, difference.times
    doubts = []
    for i, j in pairwise([0, *np.flatnonzero(sign).tolist(), len(times) - 1]):
        inside = np.sign(difference.gap[i : j + 1])
        inside = inside[np.isfinite(inside) & (inside != 0)]
        crossing = sign[i] != 0 and sign[j] != 0 and sign[i] != sign[j]
        if not crossing and (inside[1:] != inside[:-1]).any():
            doubts.append(Undecided(float(times[i]), float(times[j]), difference.pair))
    return doubts


def _pair_phases(difference: Difference) -> tuple[Phase, ...]:
    """Return the stretches of evaluations with one result, extended to meet; nothing if no leader is ever clear."""
    if not difference.sign.any():
        return ()
    stretches = difference.stretches
    edges = [stretches[0].first]
    for before, after in pairwise(stretches):
        if NOBODY in (before.leader, after.leader):
            # A leader is clear only at its own evaluations; the undecided interval begins and ends there.
            edges.append(before.last if after.leader == NOBODY else after.first)
        else:
            edges.append(_zero_between(difference, before.last, after.first))
    edges.append(stretches[-1].last)
    phases = []
    for (low, high), stretch in zip(pairwise(edges), stretches, strict=True):
        inside = (difference.times >= stretch.first) & (difference.times <= stretch.last)
        gaps = np.abs(difference.gap[inside])
        gaps = gaps[np.isfinite(gaps)]
        size = float(gaps.mean()) if gaps.size else float("nan")
        phases.append(Phase(low, high, stretch.leader, size, bound=stretch.bound))
    return tuple(phases)


def _overall_phases(curve: xr.DataArray, differences: Sequence[Difference]) -> tuple[Phase, ...]:
    """The phases of several groups: a leader is clearly ahead of every other group at each of its evaluations."""
    if not differences:
        return ()
    times = differences[0].times
    leaders = [ahead_of_all({one.pair: one.leader[k] for one in differences}) for k in range(len(times))]
    if all(leader == NOBODY for leader in leaders):
        return ()
    mean = (curve.mean("seed") if "seed" in curve.dims else curve).transpose("time", "group")
    ranked = np.sort(mean.sel(time=times).values * leader_sign(str(curve.name), curve), axis=1)
    lead = ranked[:, 1] - ranked[:, 0]
    stretches = [list(same) for _, same in groupby(range(len(times)), key=lambda k: leaders[k])]
    edges = [float(times[0])]
    for before, after in pairwise(stretches):
        last, first = float(times[before[-1]]), float(times[after[0]])
        unclear = leaders[after[0]] == NOBODY, leaders[before[0]] == NOBODY
        edges.append(last if unclear[0] else first if unclear[1] else (last + first) / 2)
    edges.append(float(times[-1]))
    return tuple(
        Phase(low, high, leaders[stretch[0]], float(np.nanmean(lead[stretch])))
        for (low, high), stretch in zip(pairwise(edges), stretches, strict=True)
    )


def _exact_overall_phases(
    curve: xr.DataArray, changes: Sequence[Crossing], exact: Callable[[np.ndarray], xr.DataArray]
) -> tuple[Phase, ...]:
    """The intervals between changes of the overall leader of an exact curve, sizes averaged over log time."""
    times = curve.coords["time"].values
    times = times[times > 0]
    if not times.size:
        return ()
    groups, sign = groups_of(curve), leader_sign(str(curve.name), curve)

    def order(at: np.ndarray) -> xr.DataArray:
        values = exact(at)
        return (values.transpose("time", "group") * sign).assign_attrs(values.attrs)

    def leader(low: float, high: float) -> Hashable:
        values = order(np.array([np.sqrt(low * high)]))
        best = np.sort(values.values[0])
        clear = best[1] - best[0] > resolution(values)
        return groups[int(np.argmin(values.values[0]))] if clear else NOBODY

    edges = [float(times[0]), *sorted({crossing.time for crossing in changes}), float(times[-1])]
    parts = [(leader(low, high), low, high) for low, high in pairwise(edges) if high > low]
    phases = []
    for who, same in groupby(parts, key=lambda part: part[0]):
        stretch = list(same)
        low, high = stretch[0][1], stretch[-1][2]
        values = order(np.geomspace(low, high, TIMES_IN_PHASE))
        ranked = np.sort(values.values, axis=1)
        lead = xr.DataArray(ranked[:, 1] - ranked[:, 0], dims=("time",), coords={"time": values.coords["time"].values})
        phases.append(Phase(low, high, who, mean_over_log_time(lead)))
    return tuple(phases) if any(phase.leader != NOBODY for phase in phases) else ()


def _exact_pair_phases(
    trajectory: Trajectory,
    name: str,
    pair: Pair,
    first: Hashable,
    changes: Sequence[Crossing],
    exact: Callable[[np.ndarray], xr.DataArray],
) -> tuple[Phase, ...]:
    times = trajectory[name].coords["time"].values
    times = times[times > 0]
    if first == NOBODY or times.size == 0:
        return ()
    edges = list(pairwise([float(times[0]), *(crossing.time for crossing in changes), float(times[-1])]))
    leaders = [first, *(crossing.leader_after for crossing in changes)]
    maker = maker_of(trajectory) if name == "loss" and trajectory.clock == "t" else None
    causes = [None] * len(edges) if maker is None else maker.phase_causes(trajectory, pair, edges, leaders)
    return tuple(
        Phase(low, high, leader, _mean_gap(exact, pair, low, high), *(cause or ()))
        for (low, high), leader, cause in zip(edges, leaders, causes, strict=True)
    )


def mean_over_log_time(curve: xr.DataArray) -> float:
    """The mean of a curve over the logarithm of time."""
    times = curve.coords["time"].values
    logs = np.log(times)
    return float(np.trapezoid(curve.values, logs) / (logs[-1] - logs[0]))


def _mean_gap(exact: Callable[[np.ndarray], xr.DataArray], pair: Pair, low: float, high: float) -> float:
    """The mean absolute gap of an exact curve, over log time."""
    if not high > low:
        return 0.0
    values = exact(np.geomspace(low, high, TIMES_IN_PHASE))
    return mean_over_log_time(abs(values.sel(group=pair[0], drop=True) - values.sel(group=pair[1], drop=True)))


def _signs(
    curve: xr.DataArray, pair: Pair, exact: Callable[[np.ndarray], xr.DataArray]
) -> tuple[np.ndarray, np.ndarray, Callable[[float, float], float]]:
    """Return times, the sign of the gap there (0: too small to be known), and a function that refines a change."""
    times = curve.coords["time"].values
    positive = times[times > 0]
    if positive.size > 1:
        times = np.union1d(times, np.geomspace(positive[0], positive[-1], TIMES)[1:-1])
    groups = groups_of(curve)
    a, b = groups.index(pair[0]), groups.index(pair[1])

    def values_at(at: float | np.ndarray) -> xr.DataArray:
        return exact(np.atleast_1d(at)).transpose("time", "group")

    def gap_at(at: float | np.ndarray) -> np.ndarray:
        values = values_at(at).values
        return np.asarray(values[:, a] - values[:, b])

    whole = gap_at(times)
    sign = np.where((np.abs(whole) > resolution(values_at(times[-1]))) & (times > 0), np.sign(whole), 0.0)

    def root(low: float, high: float) -> float:
        from scipy.optimize import brentq

        return float(brentq(lambda t: float(gap_at(t)[0]), low, high, xtol=1e-14 * high, rtol=1e-12))

    return times, np.nan_to_num(sign), root


def _ahead(a: Hashable, b: Hashable, sign: float) -> Hashable:
    return NOBODY if sign == 0 else b if sign > 0 else a
