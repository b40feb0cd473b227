"""grouping: groups from labelled images, by class, rotation and contrast, share, or attribute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.public.images import Images, standardised


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


def rotated(x: np.ndarray, degrees: float) -> np.ndarray:
    """Images (the last two dimensions) turned anticlockwise about their centre; empty corners are filled with 0.

    >>> rotated(np.array([[[1, 2], [3, 4]]]), 90).tolist()
    [[[2, 4], [1, 3]]]

    Args:
        x: Images; the last two dimensions are rows and columns.
        degrees: Angle, anticlockwise.
    """
    if not np.isfinite(degrees):
        raise ValueError(f"`degrees` should be a finite number. Found degrees = {degrees}.")
    quarters, rest = divmod(degrees, 90)
    if rest == 0:
        return np.rot90(x, int(quarters) % 4, (-2, -1))
    from scipy.ndimage import rotate

    turned = rotate(np.asarray(x, dtype=np.float32), degrees, axes=(-1, -2), reshape=False, order=1)
    return np.asarray(turned)


def contrasted(x: np.ndarray, factor: float) -> np.ndarray:
    """Move numbers to `factor` times their distance from the common mean: this changes the variance of a group.

    >>> contrasted(np.array([1.0, 3.0]), 2.0).tolist()
    [0.0, 4.0]

    Args:
        x: Numbers, as the pixels of pictures.
        factor: How many times farther from the mean they become.
    """
    if not 0 < factor < np.inf:
        raise ValueError(f"`factor` should be positive and finite. Found factor = {factor}.")
    middle = float(np.mean(x, dtype=np.float64))
    return np.asarray((x - middle) * factor + middle)


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
    return _some(data, {group: (data.codes == i, total * values[group]) for i, group in enumerate(data.groups)}, seed)


def imbalanced(data: GroupedData, rates: Mapping[Any, float], seed: int = 0) -> GroupedData:
    """The largest possible selection in which the named groups have these rates of the larger label; others are kept.

    >>> data = GroupedData(np.zeros((400, 1)), [0, 0, 1, 1] * 100, ["a", "b"] * 200)
    >>> imbalanced(data, {"a": 0.8}).label_rates["a"]
    {0: 0.2, 1: 0.8}

    Args:
        data: Points in groups from which some are chosen.
        rates: Share of the larger label in each group that is named.
        seed: Seed of the random draws; the same seed gives the same points.
    """
    low, *others = data.labels.tolist()
    if len(others) != 1:
        raise ValueError(f"Two labels are needed. Found {len(others) + 1}.")
    kept: dict[Any, tuple[np.ndarray, float]] = {}
    for group, rate in rates.items():
        if not 0 < rate < 1:
            raise ValueError(f"`rates` should lie strictly between 0 and 1. Found {rate} for group {group!r}.")
        inside = np.isin(np.arange(len(data)), data.of_group(group))
        parts = {low: 1.0 - rate, others[0]: float(rate)}
        total = min(int((inside & (data.y == label)).sum()) / share for label, share in parts.items())
        kept |= {(group, label): (inside & (data.y == label), total * share) for label, share in parts.items()}
    for i, group in enumerate(data.groups):
        if group not in rates:
            kept[group] = (data.codes == i, float((data.codes == i).sum()))
    return _some(data, kept, seed)


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


def random_task(
    images: np.ndarray, labels: np.ndarray, rng: np.random.Generator, rho: float, held_out: int = 1000
) -> tuple[GroupedData, GroupedData]:
    """A random task: groups "a" and "b" of four classes each, two labelled +1 and two labelled -1.

    >>> rng = np.random.default_rng(0)
    >>> pictures = rng.normal(size=(1000, 4, 4))
    >>> train, held_out = random_task(pictures, np.arange(1000) % 10, rng, rho=0.8, held_out=100)
    >>> train.sizes, held_out.sizes
    ({'a': 300, 'b': 75}, {'a': 100, 'b': 100})

    Images are flattened and scaled to mean 0 and standard deviation 1 over all pixels. `held_out` points of each group
    are held out. From the others, the largest possible training set with a share `rho` of group a is selected.

    Args:
        images: All images, one per row.
        labels: Class of every image, at least eight different ones.
        rng: NumPy generator that draws classes and points.
        rho: Share of group a among the training points.
        held_out: Points of each group that are held out.
    """
    if not 0 < rho < 1:
        raise ValueError(f"`rho` should lie strictly between 0 and 1. Found rho = {rho}.")
    classes = np.unique(labels)
    if len(classes) < 8:
        raise ValueError(f"Two groups of four classes need eight. Found {len(classes)}.")
    drawn = rng.permutation(classes)[:8].tolist()
    groups = {"a": (drawn[0:2], drawn[2:4]), "b": (drawn[4:6], drawn[6:8])}
    data = by_classes(standardised(np.asarray(images).reshape(len(images), -1)), np.asarray(labels), groups)
    train, away = set_aside(data, held_out, rng)
    return mixed(train, {"a": rho, "b": 1.0 - rho}, seed=int(rng.integers(2**31))), away


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


def _some(data: GroupedData, kept: Mapping[Any, tuple[np.ndarray, float]], seed: int) -> GroupedData:
    """A random selection of points of each kind, in their original order."""
    rng = np.random.default_rng(seed)
    places = [rng.permutation(np.flatnonzero(where))[: round(count)] for where, count in kept.values()]
    return data.take(np.sort(np.concatenate(places)))
