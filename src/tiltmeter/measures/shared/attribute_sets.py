"""AttributeSets: all combinations of the attributes that make up the groups."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tiltmeter.data.grouped import GroupedData

#: Positions of the attributes in a group's label, with their values.
Chosen = tuple[tuple[int, Hashable], ...]


@dataclass(frozen=True)
class AttributeSets:
    """Sets of attributes in a fixed order. A group whose label is a tuple has one attribute for each entry of the
    tuple.
    """

    sets: tuple[Chosen, ...]
    width: int

    @property
    def names(self) -> np.ndarray:
        """As text, with * for an attribute that may have any value."""
        return np.array([self._name(one) for one in self.sets], dtype=object)

    @property
    def chance(self) -> np.ndarray:
        """One over the number of sets that fix the same attributes."""
        places = [tuple(place for place, _ in one) for one in self.sets]
        return np.array([1.0 / places.count(own) for own in places])

    def members(self, data: GroupedData) -> np.ndarray:
        """Which points have which set, (points, sets)."""
        table = self.members_of(data.groups)
        return np.asarray(table[data.codes])

    def members_of(self, groups: Sequence[Hashable]) -> np.ndarray:
        """Which of these groups have which set, (groups, sets)."""
        parts = [_parts(group, self.width) for group in groups]
        return np.array([[all(own[place] == value for place, value in one) for one in self.sets] for own in parts])

    def _name(self, one: Chosen) -> str:
        fixed = dict(one)
        return ", ".join(str(fixed.get(place, "*")) for place in range(self.width))


def attribute_sets(data: GroupedData, least: int = 0) -> AttributeSets:
    """All sets with more than `least` points.

    >>> data = GroupedData(np.zeros((120, 1)), np.zeros(120), [("F", "old"), ("F", "young"), ("M", "old")] * 40)
    >>> attribute_sets(data).names.tolist()
    ['F, *', 'M, *', '*, old', '*, young', 'F, old', 'F, young', 'M, old']
    """
    width = len(data.groups[0]) if isinstance(data.groups[0], tuple) else 1
    if any((len(group) if isinstance(group, tuple) else 1) != width for group in data.groups):
        raise ValueError("All groups should have the same number of attributes. Found labels of different lengths.")
    if width == 0:
        raise ValueError("Groups should have attributes. Found an empty tuple as label.")
    counts: dict[Chosen, int] = {}
    for size in range(1, width + 1):
        for places in combinations(range(width), size):
            for group, points in data.sizes.items():
                own = tuple((place, _parts(group, width)[place]) for place in places)
                counts[own] = counts.get(own, 0) + points
    kept = tuple(one for one, points in counts.items() if points > least)
    if not kept:
        raise ValueError(f"`least` should leave some set of attributes. Found none seen more than {least} times.")
    return AttributeSets(kept, width)


def _parts(group: Hashable, width: int) -> tuple[Hashable, ...]:
    return group if width > 1 and isinstance(group, tuple) else (group,)
