"""Difference: two groups in one curve at all evaluations, with limits that hold at all evaluations together."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tiltmeter.names import NOBODY, Better

#: The second name of a difference between one group and all other groups together.
ALL = "all others"


@dataclass(frozen=True)
class Stretch:
    """Consecutive evaluations with the same result: who is better off, or "" if no difference is shown.

    At none of its evaluations is the difference larger than `bound`.
    """

    first: float
    last: float
    leader: Hashable
    evaluations: int
    bound: float


@dataclass(frozen=True)
class Change:
    """A change of leader that is shown: one group leads at the evaluation `low`, the other at `high`."""

    low: float
    high: float
    before: Hashable
    after: Hashable


class Within(NamedTuple):
    """The evaluations, up to the last, at which a difference is shown to be smaller than asked for."""

    start: float
    end: float


@dataclass(frozen=True, eq=False)
class Difference:
    """Value of `pair[0]` minus value of `pair[1]` at every evaluation, with its limits; NaN where there is no test.

    >>> gap, low, high = np.array([0.0, 0.1, -0.4]), np.array([-0.1, -0.1, -0.6]), np.array([0.1, 0.3, -0.2])
    >>> difference = Difference("loss", "lower", ("a", "b"), "step", np.array([0.0, 1.0, 10.0]), gap, low, high)
    >>> difference.leader.tolist(), difference.since, difference.within(0.7)
    (['', '', 'a'], 10.0, Within(start=0.0, end=10.0))

    All differences of one `leaders` hold together at its level, so any statement below may be quoted alone, even if it
    is chosen after seeing the data. `better` says whether "lower" or "higher" values of the curve are better. `values`
    (evaluations, 2) are those of both sides, `people` the points behind them at the last evaluation, as far as known;
    `weights` are those of the groups of the run.
    """

    curve: str
    better: Better
    pair: tuple[Hashable, Hashable]
    clock: str
    times: np.ndarray
    gap: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    values: np.ndarray | None = None
    people: tuple[int, int] | None = None
    weights: np.ndarray | None = None

    @cached_property
    def sign(self) -> np.ndarray:
        """1 where the first group is shown to have the larger value, -1 the smaller, else 0."""
        return (self.lower > 0).astype(np.int8) - (self.upper < 0).astype(np.int8)

    @property
    def leader(self) -> np.ndarray:
        """Who is shown to be better off at every evaluation ("": not shown)."""
        found = np.empty(len(self.times), dtype=object)
        found[:] = [self._ahead(int(sign)) for sign in self.sign]
        return found

    @property
    def bound(self) -> float:
        """An upper limit for the size of the difference at all evaluations; NaN if no evaluation is tested."""
        return _bound(self.lower, self.upper)

    @property
    def judged(self) -> bool:
        """Whether there are limits at any evaluation."""
        return bool(np.isfinite(self.lower).any())

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """The evaluations cut into stretches with the same result, in order."""
        if not len(self.times):
            return ()
        edges = [0, *(np.flatnonzero(np.diff(self.sign)) + 1).tolist(), len(self.times)]
        return tuple(
            Stretch(
                float(self.times[i]),
                float(self.times[j - 1]),
                self._ahead(int(self.sign[i])),
                j - i,
                _bound(self.lower[i:j], self.upper[i:j]),
            )
            for i, j in pairwise(edges)
        )

    @property
    def changes(self) -> tuple[Change, ...]:
        """Every change of leader that is shown."""
        shown = [stretch for stretch in self.stretches if stretch.leader != NOBODY]
        return tuple(
            Change(one.last, two.first, one.leader, two.leader)
            for one, two in pairwise(shown)
            if one.leader != two.leader
        )

    @property
    def reversed(self) -> Difference:
        """The same with the groups exchanged: the second minus the first."""
        return replace(
            self,
            pair=self.pair[::-1],
            gap=-self.gap,
            lower=-self.upper,
            upper=-self.lower,
            values=None if self.values is None else self.values[:, ::-1],
            people=None if self.people is None else self.people[::-1],
            weights=None if self.weights is None else -self.weights,
        )

    def within(self, distance: float) -> Within | None:
        """Return the last stretch of evaluations, up to the end, where the difference is shown to be below `distance`.

        `distance` should be fixed before looking at the data. None: not shown at the last evaluation. This is an
        equivalence test: a positive finding, unlike "no difference shown"."""
        if not distance > 0:
            raise ValueError(f"`distance` should be positive. Found distance = {distance}.")
        inside = (self.lower > -distance) & (self.upper < distance)
        if not len(inside) or not inside[-1]:
            return None
        outside = np.flatnonzero(~inside)
        first = int(outside[-1]) + 1 if outside.size else 0
        return Within(float(self.times[first]), float(self.times[-1]))

    @property
    def worse(self) -> Better:
        """Which values of the curve are worse."""
        return "higher" if self.better == "lower" else "lower"

    @property
    def behind(self) -> Hashable:
        """The other of the two groups at the last evaluation, where a leader is clear."""
        return self.pair[1] if self.leader[-1] == self.pair[0] else self.pair[0]

    @property
    def since(self) -> float:
        """From when on the leader of the last evaluation is clear without a break; NaN if none is clear there."""
        last = self.stretches[-1] if self.stretches else None
        return float("nan") if last is None or last.leader == NOBODY else last.first

    def _ahead(self, sign: int) -> Hashable:
        if sign == 0:
            return NOBODY
        return self.pair[0] if (sign > 0) == (self.better == "higher") else self.pair[1]


def _bound(lower: np.ndarray, upper: np.ndarray) -> float:
    sizes = np.maximum(np.abs(lower), np.abs(upper))
    known = sizes[np.isfinite(sizes)]
    return float(known.max()) if known.size else float("nan")
