"""Difference: two groups in one curve at all looks, with limits that hold at all looks together."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tiltmeter.names import NOBODY, Better
from tiltmeter.notebook_text import NotebookText
from tiltmeter.visible_text import group_name

#: The second name of a difference between one group and the mean of all points.
ALL = "all together"


@dataclass(frozen=True)
class Stretch:
    """Consecutive looks with the same result: who is better off, or "" if no difference is shown.

    At none of its looks is the difference larger than `bound`.
    """

    first: float
    last: float
    leader: Hashable
    looks: int
    bound: float


@dataclass(frozen=True)
class Change:
    """A change of leader that is shown: one group leads at the look `low`, the other at `high`."""

    low: float
    high: float
    before: Hashable
    after: Hashable


class Within(NamedTuple):
    """The looks, up to the last, at which a difference is shown to be smaller than asked for."""

    start: float
    end: float


@dataclass(frozen=True, eq=False)
class Difference(NotebookText):
    """Value of `pair[0]` minus value of `pair[1]` at every look, with its limits; NaN where there is no test.

    >>> found = Difference("loss", "lower", ("a", "b"), "step", np.array([0.0, 1.0, 10.0]), np.array([0.0, 0.1, -0.4]),
    ...                    np.array([-0.1, -0.1, -0.6]), np.array([0.1, 0.3, -0.2]))
    >>> print(found)
    a has the lower loss at step 10; before, no difference is shown and it is at most 0.3.
    >>> found.leader.tolist(), found.within(0.7)
    (['', '', 'a'], Within(start=0.0, end=10.0))

    All differences of one `standing` hold together at its level, so any statement below may be quoted alone, even if it
    is chosen after seeing the data. `better` says whether "lower" or "higher" values of the curve are better.
    """

    curve: str
    better: Better
    pair: tuple[Hashable, Hashable]
    clock: str
    times: np.ndarray
    gap: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @cached_property
    def sign(self) -> np.ndarray:
        """1 where the first group is shown to have the larger value, -1 the smaller, else 0."""
        return (self.lower > 0).astype(np.int8) - (self.upper < 0).astype(np.int8)

    @property
    def leader(self) -> np.ndarray:
        """Who is shown to be better off at every look ("": not shown)."""
        found = np.empty(len(self.times), dtype=object)
        found[:] = [self._ahead(int(sign)) for sign in self.sign]
        return found

    @property
    def bound(self) -> float:
        """An upper limit for the size of the difference at all looks; NaN if no look is tested."""
        return _bound(self.lower, self.upper)

    @property
    def judged(self) -> bool:
        """Whether there are limits at any look."""
        return bool(np.isfinite(self.lower).any())

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """The looks cut into stretches with the same result, in order."""
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
        return replace(self, pair=self.pair[::-1], gap=-self.gap, lower=-self.upper, upper=-self.lower)

    @property
    def throughout(self) -> bool:
        """Whether one group is shown to lead at every look."""
        return len(self.stretches) == 1 and self.stretches[0].leader != NOBODY

    def within(self, distance: float) -> Within | None:
        """Return the last stretch of looks, up to the end, where the difference is shown to be below `distance`.

        `distance` should be fixed before looking at the data. None: not shown at the last look. This is an equivalence
        test: a positive finding, unlike "no difference shown".
        """
        if not distance > 0:
            raise ValueError(f"`distance` should be positive. Found distance = {distance}.")
        inside = (self.lower > -distance) & (self.upper < distance)
        if not len(inside) or not inside[-1]:
            return None
        outside = np.flatnonzero(~inside)
        first = int(outside[-1]) + 1 if outside.size else 0
        return Within(float(self.times[first]), float(self.times[-1]))

    def __str__(self) -> str:
        return self.sentence()

    def sentence(self, than: bool = False) -> str:
        """What is shown, in words; `than` names the other group too, where there are more than two."""
        a, b = map(group_name, self.pair)
        if not self.judged:
            return f"{self.curve} of {a} and {b} is not judged."
        if not self.sign.any():
            return (
                f"no difference in {self.curve} between {a} and {b} is shown at any look; any gap is at most "
                f"{self.bound:.2g}."
            )
        if self.throughout:
            return f"{self._having(self.stretches[0].leader, than)} throughout."
        text = "; ".join(
            f"{self._having(leader, than)} {_spans(self.clock, [s for s in self.stretches if s.leader == leader])}"
            for leader in dict.fromkeys(stretch.leader for stretch in self.stretches)
            if leader != NOBODY
        )
        for change in self.changes:
            text += f"; the lead changes between {self.clock} {change.low:.4g} and {change.high:.4g}"
        return f"{text}{self._rest()}."

    def _rest(self) -> str:
        """Describe the looks at which nothing is shown."""
        rest = [stretch for stretch in self.stretches if stretch.leader == NOBODY]
        if not rest:
            return ""
        shown = [stretch for stretch in self.stretches if stretch.leader != NOBODY]
        where = "elsewhere"
        if all(stretch.last < shown[0].first for stretch in rest):
            where = "before"
        elif all(stretch.first > shown[-1].last for stretch in rest):
            where = "after"
        bounds = [stretch.bound for stretch in rest if np.isfinite(stretch.bound)]
        size = f" and it is at most {max(bounds):.2g}" if bounds else ""
        return f"; {where}, no difference is shown{size}"

    def _ahead(self, sign: int) -> Hashable:
        if sign == 0:
            return NOBODY
        return self.pair[0] if (sign > 0) == (self.better == "higher") else self.pair[1]

    def _having(self, leader: Hashable, than: bool) -> str:
        """Describe who has the better value; for a comparison with the mean, whether the group is above or below."""
        if self.pair[1] != ALL and than:
            other = self.pair[1] if leader == self.pair[0] else self.pair[0]
            return f"{group_name(leader)} has a {self.better} {self.curve} than {group_name(other)}"
        if self.pair[1] != ALL:
            return f"{group_name(leader)} has the {self.better} {self.curve}"
        above = (leader == self.pair[0]) == (self.better == "higher")
        return f"{group_name(self.pair[0])} lies {'above' if above else 'below'} the mean {self.curve}"


def _bound(lower: np.ndarray, upper: np.ndarray) -> float:
    sizes = np.maximum(np.abs(lower), np.abs(upper))
    known = sizes[np.isfinite(sizes)]
    return float(known.max()) if known.size else float("nan")


def _spans(clock: str, stretches: list[Stretch]) -> str:
    if len(stretches) > 3:
        count = sum(one.looks for one in stretches)
        return f"at {count} looks between {clock} {stretches[0].first:.4g} and {stretches[-1].last:.4g}"
    words = [
        f"at {clock} {one.first:.4g}" if one.looks == 1 else f"from {clock} {one.first:.4g} to {one.last:.4g}"
        for one in stretches
    ]
    return " and ".join(words)
