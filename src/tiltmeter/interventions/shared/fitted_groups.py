"""FittedGroups: the groups to which a law fits one value each, and the groups of points that it then can answer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.interventions.shared.attributes import attribute_codes


@dataclass(frozen=True, eq=False)
class FittedGroups:
    """Groups as they are in the data, or joined by an attribute that several of them share.

    >>> import tiltmeter as tm
    >>> data = tm.GroupedData([[0.0]] * 4, [0, 1, 0, 1], ["cat, grass", "dog, grass", "cat, sand", "dog, sand"])
    >>> where = {group: group[5:] for group in data.groups}
    >>> found = FittedGroups.of(where, data)
    >>> found.names, found.codes.tolist(), found.by_group([1.0, 2.0])
    (('grass', 'sand'), [0, 0, 1, 1], [1.0, 2.0, 1.0, 2.0, 1.0, 2.0])
    """

    names: tuple[Hashable, ...]
    #: The number of every point's fitted group.
    codes: np.ndarray
    #: For every group that can be answered the number of its fitted group.
    places: Mapping[Hashable, int]

    @classmethod
    def of(cls, attribute: Mapping[Hashable, Hashable] | None, data: Any) -> FittedGroups:
        codes = attribute_codes(attribute, data.groups)
        if attribute is None:
            return cls(tuple(data.groups), data.codes, {group: place for place, group in enumerate(data.groups)})
        names = {attribute[group]: int(place) for group, place in zip(data.groups, codes, strict=True)}
        # The attribute may also be told of groups that are not among the held-out ones. Of a new point only the
        # attribute may be known, so its values are answered too.
        places = {**names, **{group: names[value] for group, value in attribute.items() if value in names}}
        return cls(tuple(names), codes[data.codes], places)

    def by_group(self, values: Sequence[float]) -> list[float]:
        """One value for every group that can be answered, from one for every fitted group."""
        return [values[place] for place in self.places.values()]

    def check_both_labels(self, y: np.ndarray, law: str) -> None:
        """Refuse a group with points of one label alone, to which nothing can be fitted."""
        for code, group in enumerate(self.names):
            found = np.unique(y[self.codes == code])
            if len(found) < 2:
                what = "none" if not len(found) else f"y = {found[0].item()!r} alone"
                raise ValueError(
                    f"{law} needs held-out points of both labels in every group. Found {what} in {group!r}."
                )
