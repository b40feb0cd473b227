"""picture_tasks: tasks made of labelled pictures, by rotation, label rates, or classes drawn at random."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import tiltmeter as tm
import tiltmeter_lab as lab


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


def imbalanced(data: tm.GroupedData, rates: Mapping[Any, float], seed: int = 0) -> tm.GroupedData:
    """The largest possible selection in which the named groups have these rates of the larger label; others are kept.

    >>> data = tm.GroupedData(np.zeros((400, 1)), [0, 0, 1, 1] * 100, ["a", "b"] * 200)
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
    rng = np.random.default_rng(seed)
    places = [rng.permutation(np.flatnonzero(where))[: round(count)] for where, count in kept.values()]
    return data.take(np.sort(np.concatenate(places)))


def random_task(
    images: np.ndarray, labels: np.ndarray, rng: np.random.Generator, rho: float, held_out: int = 1000
) -> tuple[tm.GroupedData, tm.GroupedData]:
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
    data = lab.data.by_classes(
        lab.data.standardised(np.asarray(images).reshape(len(images), -1)), np.asarray(labels), groups
    )
    train, away = lab.data.set_aside(data, held_out, rng)
    return lab.data.mixed(train, {"a": rho, "b": 1.0 - rho}, seed=int(rng.integers(2**31))), away
