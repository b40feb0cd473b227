"""Crossings: when the lead passes from one group to another."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Self

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from tiltmeter.analysis.exact import exact_curve
from tiltmeter.analysis.pairs import ROUNDING, SURE, Pair, groups_of, leader_sign, pair_gap, the_pair
from tiltmeter.names import NOBODY
from tiltmeter.record.trajectory import Trajectory

#: An exact curve is looked at this many times between its first and last time, so that no crossing hides between looks.
LOOKS = 512


@dataclass(frozen=True)
class Crossing:
    """One change of leader. Its time is known to lie between `low` and `high`."""

    time: float
    low: float
    high: float
    pair: Pair
    leader_before: Hashable
    leader_after: Hashable

    def __str__(self) -> str:
        spread = "" if self.high - self.low < 1e-6 * self.time else f" ({self.low:.3g} to {self.high:.3g})"
        return f"{self.leader_before} hands the lead to {self.leader_after} at {self.time:.4g}{spread}"


@dataclass(frozen=True)
class Undecided:
    """A stretch in which a measured gap changes sign inside the noise: whether the lead changed is not known."""

    low: float
    high: float
    pair: Pair

    def __str__(self) -> str:
        a, b = self.pair
        return f"undecided between {self.low:.4g} and {self.high:.4g} whether {a} or {b} leads"


class Crossings(tuple[Crossing, ...]):
    """The crossings in order of time, and who leads first and last; as text, one sentence.

    `first_leader` and `last_leader` are the groups ahead of every other one at the first and at the last look that is
    decided between the two ("" where there is no such group). `undecided` lists where the noise hides the answer.
    """

    sentence: str
    first_leader: Hashable
    last_leader: Hashable
    undecided: tuple[Undecided, ...]

    def __new__(
        cls,
        found: Iterable[Crossing],
        sentence: str,
        first_leader: Hashable = NOBODY,
        last_leader: Hashable = NOBODY,
        undecided: Iterable[Undecided] = (),
    ) -> Self:
        self = super().__new__(cls, tuple(found))
        self.sentence = sentence
        self.first_leader, self.last_leader = first_leader, last_leader
        self.undecided = tuple(undecided)
        return self

    @property
    def leaders(self) -> tuple[Hashable, ...]:
        """Who leads in turn, one more than there are crossings; empty where nobody does. For one pair of groups."""
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


def crossings(trajectory: Trajectory, curve: str = "loss", pair: Pair | None = None) -> Crossings:
    """Every change of leader in one curve, for one pair of groups or (default) for all pairs.

    Exact theory is refined by root finding to 1e-10. A measured curve is *decided* at a look when its gap exceeds two
    standard errors (over seeds, or from `<curve>_se`; with neither, every look counts); a crossing is a change of sign
    between decided looks, and its interval runs from the last look decided one way to the first decided the other.

    >>> from tiltmeter import predict
    >>> from tiltmeter.problem import cases
    >>> found = crossings(predict(*cases.centred_crossing()))
    >>> round(found[0].time, 3), found[0].leader_before, found[0].leader_after
    (5.643, '-', '+')
    >>> print(found)
    - leads until t = 5.643, then +.
    >>> found.first_leader, found.last_leader
    ('-', '+')

    Where the sign changes only inside the noise, nothing is claimed; `.undecided` says between which looks.
    A crossing of losses is not one of errors: ask for `crossings(trajectory, "error")` too.
    """
    values = trajectory[curve]
    extra = [dim for dim in values.dims if dim not in ("time", "group", "seed")]
    if extra:
        raise ValueError(
            f"`crossings` is for one run; this one has a grid over {', '.join(map(str, extra))}. "
            "Use `crossing_count` and `leader`, or select one point."
        )
    lower_leads = leader_sign(curve, values)
    pairs = [the_pair(values, pair)] if pair is not None else list(combinations(groups_of(values), 2))
    if not pairs:
        raise ValueError("There is one group only: nothing to compare.")
    exact = exact_curve(trajectory, curve) if "seed" not in values.dims else None
    found: list[Crossing] = []
    leaders: list[tuple[Hashable, Hashable]] = []
    doubts: list[Undecided] = []
    for a, b in pairs:
        times, sign, refine = _signs(trajectory, curve, (a, b), exact)
        decided = np.flatnonzero(sign)
        ends = (sign[decided[0]], sign[decided[-1]]) if decided.size else (0.0, 0.0)
        leaders.append((_ahead(a, b, ends[0] * lower_leads), _ahead(a, b, ends[1] * lower_leads)))
        for i, j in pairwise(decided):
            if sign[i] != sign[j]:
                time, low, high = refine(times[i], times[j])
                before, after = (_ahead(a, b, sign[k] * lower_leads) for k in (i, j))
                found.append(Crossing(time, low, high, (a, b), before, after))
        if exact is None:
            doubts += _undecided(times, pair_gap(trajectory, curve, (a, b))[0].values, sign, (a, b))
    found.sort(key=lambda crossing: crossing.time)
    doubts.sort(key=lambda doubt: doubt.low)
    first, last = (_ahead_of_all(pairs, ahead) for ahead in zip(*leaders, strict=True))
    return Crossings(found, _sentence(found, first, pairs, trajectory.clock), first, last, doubts)


def _undecided(times: np.ndarray, gap: np.ndarray, sign: np.ndarray, pair: Pair) -> list[Undecided]:
    """Changes of sign between looks that are decided the same way, or before the first or after the last of them."""
    decided = [0, *np.flatnonzero(sign).tolist(), len(times) - 1]
    found = []
    for i, j in pairwise(decided):
        inside = np.sign(gap[i : j + 1])
        inside = inside[np.isfinite(inside) & (inside != 0)]
        crossing = sign[i] != 0 and sign[j] != 0 and sign[i] != sign[j]
        if not crossing and (inside[1:] != inside[:-1]).any():
            found.append(Undecided(float(times[i]), float(times[j]), pair))
    return found


def _signs(
    trajectory: Trajectory, name: str, pair: Pair, exact: Callable[[np.ndarray], xr.DataArray] | None
) -> tuple[np.ndarray, np.ndarray, Callable[[float, float], tuple[float, float, float]]]:
    """Times, the sign of the gap there (0: undecided), and how to narrow a change of sign down."""
    times = trajectory[name].coords["time"].values
    if exact is None:
        gap, error = pair_gap(trajectory, name, pair)
        margin = ROUNDING if error is None else SURE * error.values
        sign = np.where(np.abs(gap.values) > margin, np.sign(gap.values), 0.0)
        return times, np.nan_to_num(sign), _between_looks(times, gap.values)
    positive = times[times > 0]
    if positive.size > 1:
        times = np.union1d(times, np.geomspace(positive[0], positive[-1], LOOKS)[1:-1])
    groups = groups_of(trajectory[name])
    one, two = groups.index(pair[0]), groups.index(pair[1])

    def gap_at(at: float | np.ndarray) -> np.ndarray:
        values = exact(np.atleast_1d(at)).transpose("time", "group").values
        return np.asarray(values[:, one] - values[:, two])

    whole = gap_at(times)
    sign = np.where((np.abs(whole) > ROUNDING) & (times > 0), np.sign(whole), 0.0)

    def root(low: float, high: float) -> tuple[float, float, float]:
        time = float(brentq(lambda t: float(gap_at(t)[0]), low, high, xtol=1e-14 * high, rtol=1e-12))
        return time, time, time

    return times, np.nan_to_num(sign), root


def _between_looks(times: np.ndarray, gap: np.ndarray) -> Callable[[float, float], tuple[float, float, float]]:
    def interpolate(low: float, high: float) -> tuple[float, float, float]:
        inside = (times >= low) & (times <= high) & np.isfinite(gap)
        t, values = times[inside], gap[inside]
        change = int(np.flatnonzero(np.sign(values[:-1]) != np.sign(values[-1]))[-1])
        share = values[change] / (values[change] - values[change + 1])
        return float(t[change] + share * (t[change + 1] - t[change])), float(low), float(high)

    return interpolate


def _ahead(a: Hashable, b: Hashable, sign: float) -> Hashable:
    return NOBODY if sign == 0 else b if sign > 0 else a


def _ahead_of_all(pairs: list[Pair], ahead: tuple[Hashable, ...]) -> Hashable:
    """The group that is ahead in every pair it belongs to."""
    behind = {group for pair, leader in zip(pairs, ahead, strict=True) for group in pair if group != leader}
    found = [group for group in dict.fromkeys(ahead) if group != NOBODY and group not in behind]
    return found[0] if found else NOBODY


def _sentence(found: list[Crossing], first: Hashable, pairs: list[Pair], clock: str) -> str:
    if len(pairs) > 1:
        if not found:
            return "No change of leader between any two groups."
        return "; ".join(f"{c.leader_before} -> {c.leader_after} at {clock} = {c.time:.4g}" for c in found) + "."
    if first == NOBODY:
        return f"Neither {pairs[0][0]} nor {pairs[0][1]} ever leads beyond doubt."
    if not found:
        return f"{first} leads throughout."
    parts = [f"{found[0].leader_before} leads until {clock} = {found[0].time:.4g}"]
    parts += [f"then {c.leader_after} until {clock} = {following.time:.4g}" for c, following in pairwise(found)]
    return ", ".join([*parts, f"then {found[-1].leader_after}"]) + "."
