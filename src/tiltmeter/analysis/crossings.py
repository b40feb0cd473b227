"""Crossings: when the lead passes from one group to another."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Self

import numpy as np
import xarray as xr

from tiltmeter.analysis.crossing_sentences import ahead_of_all, crossing_sentence, equal_from
from tiltmeter.analysis.difference import Difference
from tiltmeter.analysis.exact import exact_curve
from tiltmeter.analysis.pairs import AskedPair, Pair, groups_of, leader_sign, resolution, the_pair
from tiltmeter.analysis.standing import standing
from tiltmeter.analysis.statements import Standing
from tiltmeter.names import NOBODY
from tiltmeter.notebook_text import NotebookText
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.visible_text import group_name

#: An exact curve is evaluated at this many times, so that no crossing between the given times is missed.
LOOKS = 512


@dataclass(frozen=True)
class Crossing(NotebookText):
    """One change of leader, between `low` and `high`; for a measured run, `time` is an estimate in between."""

    time: float
    low: float
    high: float
    pair: Pair
    leader_before: Hashable
    leader_after: Hashable

    def __str__(self) -> str:
        spread = "" if self.high - self.low < 1e-6 * self.time else f" ({self.low:.3g} to {self.high:.3g})"
        before, after = group_name(self.leader_before), group_name(self.leader_after)
        return f"{before} hands the lead to {after} at {self.time:.4g}{spread}"


@dataclass(frozen=True)
class Undecided(NotebookText):
    """An interval in which a measured gap changes sign within its band: it is not known whether the lead changed."""

    low: float
    high: float
    pair: Pair

    def __str__(self) -> str:
        a, b = map(group_name, self.pair)
        return f"undecided between {self.low:.4g} and {self.high:.4g} whether {a} or {b} leads"


class Crossings(tuple[Crossing, ...], NotebookText):
    """The crossings in order of time, and who leads first and last; as text, one sentence.

    `first_leader` is the group that leads every other at the first look where a leader is shown, `last_leader` at the
    last such look ("" if there is none). `undecided` lists intervals where noise hides whether the lead changed.
    `standing` holds the bands behind the result (None: exact theory).
    """

    sentence: str
    first_leader: Hashable
    last_leader: Hashable
    undecided: tuple[Undecided, ...]
    standing: Standing | None

    def __new__(
        cls,
        found: Iterable[Crossing],
        sentence: str,
        first_leader: Hashable = NOBODY,
        last_leader: Hashable = NOBODY,
        undecided: Iterable[Undecided] = (),
        standing: Standing | None = None,
    ) -> Self:
        self = super().__new__(cls, tuple(found))
        self.sentence, self.undecided, self.standing = sentence, tuple(undecided), standing
        self.first_leader, self.last_leader = first_leader, last_leader
        return self

    @property
    def leaders(self) -> tuple[Hashable, ...]:
        """The leaders in order, one more than there are crossings; empty if nobody leads. For one pair of groups."""
        if len({crossing.pair for crossing in self}) > 1:
            raise ValueError("Several pairs of groups have no common order of leaders: ask for one with pair=.")
        if self.first_leader == NOBODY:
            return ()
        return (self.first_leader, *(crossing.leader_after for crossing in self))

    @property
    def changes(self) -> bool:
        """Whether the first leader is not the last."""
        return self.first_leader != self.last_leader

    def __str__(self) -> str:
        return self.sentence


def crossings(
    trajectory: Trajectory, curve: str = "loss", pair: AskedPair | None = None, level: float = 0.05
) -> Crossings:
    """Return every change of leader in one curve, for one pair of groups or (default) for all pairs.

    >>> from tiltmeter import predict
    >>> from tiltmeter.problem import cases
    >>> found = crossings(predict(*cases.centred_crossing()))
    >>> round(found[0].time, 3), found[0].leader_before, found[0].leader_after
    (5.643, '-', '+')
    >>> print(found)
    - leads until t = 5.643, then +.
    >>> found.first_leader, found.last_leader
    ('-', '+')

    For exact theory, crossings are found by root finding: to 1e-10 in closed form. Where equations are integrated,
    changes of sign below the error of the integration do not count. For a measured curve, a crossing is reported only
    if it is shown: one group leads at one look and the other at a later look, by bands that hold at all looks and for
    all pairs together with probability 1 - `level` (see `standing`). With six groups or more, each is compared with
    the mean of all.

    If the sign changes only within the band, no crossing is reported; `.undecided` says between which looks. A crossing
    of losses need not be a crossing of errors: ask for `crossings(trajectory, "error")` too.
    """
    values = trajectory[curve]
    extra = [dim for dim in values.dims if dim not in ("time", "group", "seed")]
    if extra == ["class"]:
        raise ValueError(f"Curve {curve!r} has one value per class: use `class_crossings`, or select a class.")
    if extra:
        raise ValueError(
            f"`crossings` is for one run; this one has a grid over {', '.join(map(str, extra))}. "
            "Use `crossing_count` and `leader`, or select one point."
        )
    lower_leads = leader_sign(curve, values)
    chosen = None if pair is None else the_pair(values, pair)
    pairs = [chosen] if chosen is not None else list(combinations(groups_of(values), 2))
    if not pairs:
        raise ValueError("There is one group only: nothing to compare.")
    exact = exact_curve(trajectory, curve) if "seed" not in values.dims else None
    if exact is None:
        return _measured(standing(trajectory, curve, pair=chosen, level=level), trajectory.clock)
    found: list[Crossing] = []
    first: dict[Pair, Hashable] = {}
    last: dict[Pair, Hashable] = {}
    equal: list[float | None] = []
    for a, b in pairs:
        times, sign, refine = _signs(trajectory, curve, (a, b), exact)
        decided = np.flatnonzero(sign)
        ends = (sign[decided[0]], sign[decided[-1]]) if decided.size else (0.0, 0.0)
        first[a, b], last[a, b] = (_ahead(a, b, end * lower_leads) for end in ends)
        ended = not decided.size or decided[-1] + 1 >= len(times)
        equal.append(None if ended else float(times[decided[-1] + 1]))
        for i, j in pairwise(decided):
            if sign[i] != sign[j]:
                before, after = (_ahead(a, b, sign[k] * lower_leads) for k in (i, j))
                time = refine(times[i], times[j])
                found.append(Crossing(time, time, time, (a, b), before, after))
    found.sort(key=lambda crossing: crossing.time)
    starts = [start for start in equal if start is not None]
    since = max(starts) if len(starts) == len(pairs) else None
    sentence = crossing_sentence(found, first, trajectory.clock)
    sentence += equal_from(since, resolution(exact(values.coords["time"].values[-1:])), trajectory.clock)
    return Crossings(found, sentence, ahead_of_all(first), ahead_of_all(last))


def _measured(judged: Standing, clock: str) -> Crossings:
    """Return the changes of leader that the bands show."""
    found: list[Crossing] = []
    doubts: list[Undecided] = []
    first: dict[Pair, Hashable] = {}
    last: dict[Pair, Hashable] = {}
    for one in judged.differences:
        for change in one.changes:
            time = estimated(one, change.low, change.high)
            found.append(Crossing(time, change.low, change.high, one.pair, change.before, change.after))
        doubts += _undecided(one)
        shown = one.leader[one.sign != 0]
        first[one.pair], last[one.pair] = (shown[0], shown[-1]) if shown.size else (NOBODY, NOBODY)
    found.sort(key=lambda crossing: crossing.time)
    doubts.sort(key=lambda doubt: doubt.low)
    as_recorded = judged.basis == "values" and bool(first)
    sentence = crossing_sentence(found, first, clock) if as_recorded else str(judged)
    return Crossings(found, sentence, ahead_of_all(first), ahead_of_all(last), doubts, judged)


def estimated(difference: Difference, low: float, high: float) -> float:
    """Return where the measured gap passes through zero for the last time between two looks."""
    inside = (difference.times >= low) & (difference.times <= high) & np.isfinite(difference.gap)
    times, gap = difference.times[inside], difference.gap[inside]
    change = int(np.flatnonzero(np.sign(gap[:-1]) != np.sign(gap[-1]))[-1])
    share = gap[change] / (gap[change] - gap[change + 1])
    return float(times[change] + share * (times[change + 1] - times[change]))


def _undecided(difference: Difference) -> list[Undecided]:
    """Return changes of sign that no pair of looks with different leaders encloses."""
    sign, times = difference.sign, difference.times
    found = []
    for i, j in pairwise([0, *np.flatnonzero(sign).tolist(), len(times) - 1]):
        inside = np.sign(difference.gap[i : j + 1])
        inside = inside[np.isfinite(inside) & (inside != 0)]
        crossing = sign[i] != 0 and sign[j] != 0 and sign[i] != sign[j]
        if not crossing and (inside[1:] != inside[:-1]).any():
            found.append(Undecided(float(times[i]), float(times[j]), difference.pair))
    return found


def _signs(
    trajectory: Trajectory, name: str, pair: Pair, exact: Callable[[np.ndarray], xr.DataArray]
) -> tuple[np.ndarray, np.ndarray, Callable[[float, float], float]]:
    """Return times, the sign of the gap there (0: too small to be known), and a function that refines a change."""
    times = trajectory[name].coords["time"].values
    positive = times[times > 0]
    if positive.size > 1:
        times = np.union1d(times, np.geomspace(positive[0], positive[-1], LOOKS)[1:-1])
    groups = groups_of(trajectory[name])
    one, two = groups.index(pair[0]), groups.index(pair[1])

    def values_at(at: float | np.ndarray) -> xr.DataArray:
        return exact(np.atleast_1d(at)).transpose("time", "group")

    def gap_at(at: float | np.ndarray) -> np.ndarray:
        values = values_at(at).values
        return np.asarray(values[:, one] - values[:, two])

    whole = gap_at(times)
    sign = np.where((np.abs(whole) > resolution(values_at(times[-1]))) & (times > 0), np.sign(whole), 0.0)

    def root(low: float, high: float) -> float:
        from scipy.optimize import brentq

        return float(brentq(lambda t: float(gap_at(t)[0]), low, high, xtol=1e-14 * high, rtol=1e-12))

    return times, np.nan_to_num(sign), root


def _ahead(a: Hashable, b: Hashable, sign: float) -> Hashable:
    return NOBODY if sign == 0 else b if sign > 0 else a
