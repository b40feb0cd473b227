"""Contrasts: which groups are compared: two with each other, of more each with all others, attributes one by one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from tiltmeter.leaders.difference import ALL
from tiltmeter.leaders.points import pairs
from tiltmeter.pairs import Pair


class Contrast(NamedTuple):
    """A comparison: weights of the groups, those of one side adding up to 1, of the other to -1, and its two names."""

    weights: np.ndarray
    pair: Pair


def contrasts(groups: Sequence[Hashable], counts: np.ndarray, pair: Pair | None = None) -> list[Contrast]:
    """The comparisons of groups of so many points: two with each other, of more each with all others together.

    >>> [(one.pair, one.weights.tolist()) for one in contrasts(["a", "b"], np.array([10, 30]))]
    [(('a', 'b'), [1.0, -1.0])]
    >>> [one.pair for one in contrasts([("x", 1), ("x", 2), ("y", 1)], np.array([10, 30, 5]))]
    [('x', 'y'), (1, 2)]

    Groups by several attributes are compared by each attribute alone.
    """
    if pair is not None:
        return [Contrast(_between([g == pair[0] for g in groups], [g == pair[1] for g in groups], counts), pair)]
    widths = {len(group) if isinstance(group, tuple) else 0 for group in groups}
    if len(widths) > 1 or widths == {0}:
        return _one_attribute(list(groups), counts)
    found = []
    for place in range(widths.pop()):
        found += _one_attribute([group[place] for group in groups], counts)  # type: ignore[index]
    return found


def intersections(groups: Sequence[Hashable], counts: np.ndarray) -> list[Contrast]:
    """The comparisons of groups by several attributes with all others together; none of groups by one attribute."""
    several = all(isinstance(group, tuple) and len(group) > 1 for group in groups)
    return _one_attribute(list(groups), counts, two=False) if several else []


def _one_attribute(values: list[Hashable], counts: np.ndarray, two: bool = True) -> list[Contrast]:
    distinct = [value for value in dict.fromkeys(values) if counts[[one == value for one in values]].sum()]
    if len(distinct) < 2:
        return []
    members = {value: np.array([one == value for one in values]) for value in distinct}
    if two and len(distinct) == 2:
        first, second = distinct
        return [Contrast(_between(members[first], members[second], counts), (first, second))]
    return [Contrast(_between(own, ~own, counts), (value, ALL)) for value, own in members.items()]


def _between(first: Sequence[bool] | np.ndarray, second: Sequence[bool] | np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The mean over the points of one side minus that of the other."""
    weights = np.zeros(len(counts))
    for side, sign in ((first, 1.0), (second, -1.0)):
        own = np.where(side, np.asarray(counts, dtype=float), 0.0)
        # The two groups of a pair are compared even where one has no points: then it is said that it has too few.
        own = own if own.sum() else np.asarray(side, dtype=float)
        weights += sign * own / own.sum()
    return weights


def every_pair(groups: Sequence[Hashable]) -> list[Contrast]:
    """Each group with every later one."""
    return [Contrast(row, (groups[int(np.argmax(row))], groups[int(np.argmin(row))])) for row in pairs(len(groups))]
