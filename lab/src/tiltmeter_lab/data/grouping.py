"""grouping: groups from labelled images, by class, share, or attribute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter_lab.data.images import Images


def by_classes(x: np.ndarray, y: np.ndarray, groups: Mapping[Any, tuple[Sequence[int], Sequence[int]]]) -> GroupedData:
    """Classes as groups with labels: {group: (classes labelled +1, classes labelled -1)}; other classes are left out.

    >>> x, y = np.arange(240.0)[:, None], np.arange(240) % 6
    >>> by_classes(x, y, {"even": ([0], [2]), "odd": ([1], [3])})
    <GroupedData 160 points of 1, 2 groups, imbalance 1>
      group  points   share  label -1  label 1
      even       80  50.0 %    50.0 %   50.0 %
      odd        80  50.0 %    50.0 %   50.0 %

    Args:
        x: Points, one per row.
        y: Class of every point as a number.
        groups: For each group, the classes that get label +1 and those that get label -1.
    """
    if len(x) != len(y):
        raise ValueError(f"Lengths should agree. Found {len(x)} in x, {len(y)} in y.")
    used: dict[int, tuple[Any, int]] = {}
    pair: Any  # comes from the user: may have another form than the signature says
    for group, pair in groups.items():
        if len(pair) != 2 or any(isinstance(classes, str) or not isinstance(classes, Iterable) for classes in pair):
            raise ValueError(f"Each group should have classes labelled +1 and classes labelled -1. Found {pair!r}.")
        for label, classes in zip((1, -1), pair, strict=True):
            for one in classes:
                if not isinstance(one, Integral):
                    raise TypeError(f"A class should be a whole number (see `named_classes`). Found {one!r}.")
                if int(one) in used:
                    raise ValueError(f"Every class should be used once. Found class {one} twice.")
                if not np.any(y == one):
                    raise ValueError(f"Every class should have points. Found none of class {one}.")
                used[int(one)] = (group, label)
    places = np.flatnonzero(np.isin(y, list(used)))
    members = [used[int(one)] for one in y[places]]
    return GroupedData(x[places], np.asarray([m[1] for m in members]), [m[0] for m in members], groups=list(groups))


def named_classes(
    images: Images, groups: Mapping[Any, tuple[Sequence[Any], Sequence[Any]]]
) -> dict[Any, tuple[tuple[int, ...], tuple[int, ...]]]:
    """The same groups, with class names replaced by class numbers."""
    return {name: (images.numbers(up), images.numbers(down)) for name, (up, down) in groups.items()}


def mixed(data: GroupedData, shares: Mapping[Any, float], seed: int = 0) -> GroupedData:
    """The largest possible selection of points in which the groups have these shares, which add up to 1.

    >>> data = GroupedData(np.zeros((400, 1)), np.zeros(400), ["a", "b"] * 200)
    >>> mixed(data, {"a": 0.8, "b": 0.2}).sizes
    {'a': 200, 'b': 50}

    Args:
        data: Points in groups from which some are chosen.
        shares: Share of every group in the result; they add up to 1.
        seed: Seed of the random draws; the same seed gives the same points.
    """
    if set(shares) != set(data.groups):
        raise KeyError(f"`shares` should be given for {', '.join(map(repr, data.groups))}. Found {dict(shares)}.")
    values = {group: float(shares[group]) for group in data.groups}
    if not all(0 < share < 1 for share in values.values()) or abs(sum(values.values()) - 1) > 1e-9:
        raise ValueError(f"`shares` should lie strictly between 0 and 1 and add up to 1. Found {dict(shares)}.")
    total = min(size / values[group] for group, size in data.sizes.items())
    rng = np.random.default_rng(seed)
    places = [rng.permutation(data.of_group(group))[: round(total * values[group])] for group in data.groups]
    return data.take(np.sort(np.concatenate(places)))


def by_attributes(x: np.ndarray, target: np.ndarray, attribute: np.ndarray, name: str = "attribute") -> GroupedData:
    """A yes-no target (labels 1 and 0) in two groups by a yes-no attribute: `name` and "no `name`".

    >>> blond = by_attributes(np.zeros((200, 1)), np.arange(200) % 2 == 0, np.arange(200) < 50, "Male")
    >>> blond.sizes
    {'Male': 50, 'no Male': 150}

    Args:
        x: Points, one per row.
        target: What is to be predicted, yes or no for each point.
        attribute: What divides the points into groups, yes or no for each point.
        name: Name of the group that has the attribute.
    """
    label, group = _yes_or_no(target, "target"), _yes_or_no(attribute, "attribute")
    return GroupedData(x, label.astype(np.int64), np.where(group, name, f"no {name}"), groups=[name, f"no {name}"])


def _yes_or_no(values: np.ndarray, name: str) -> np.ndarray:
    """Booleans; refuses -1 for "no", as in CelebA's own file, because it would count as yes."""
    found = np.asarray(values)
    others = found[~np.isin(found, (0, 1))]
    if others.size:
        raise ValueError(f"`{name}` should be yes or no: booleans, or 0 and 1. Found {others[0]}.")
    return found.astype(bool)


def set_aside(data: GroupedData, held_out: int, rng: np.random.Generator) -> tuple[GroupedData, GroupedData]:
    """All points except `held_out` of every group, and those held-out points.

    >>> data = GroupedData(np.zeros((50, 2)), [0, 1] * 25, ["a"] * 30 + ["b"] * 20)
    >>> [len(part) for part in set_aside(data, 5, np.random.default_rng(0))]
    [40, 10]

    Args:
        data: Points in groups from which some are chosen.
        held_out: Points of each group that are held out.
        rng: NumPy generator that draws them.
    """
    away = np.zeros(len(data), dtype=bool)
    for group in data.groups:
        members = data.of_group(group)
        if not 0 < held_out < len(members):
            raise ValueError(
                f"`held_out` should leave points of every group. Found {held_out} of {len(members)} in {group!r}."
            )
        away[rng.permutation(members)[:held_out]] = True
    return data.take(np.flatnonzero(~away)), data.take(np.flatnonzero(away))
