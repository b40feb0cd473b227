"""Sample: some of the training points, and how many points of the data each represents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tiltmeter.data.example_weights import example_weights
from tiltmeter.data.group_shares import share_of
from tiltmeter.data.grouped import GroupedData


def sampled(data: GroupedData, sample: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of the sample, in order, and the relative number of points that each represents.

    >>> data = GroupedData(np.zeros((1000, 1)), np.zeros(1000), ["a"] * 960 + ["b"] * 40)
    >>> places, stands_for = sampled(data, 200, seed=0)
    >>> (places >= 960).sum().item(), stands_for[-1].round(2).item(), stands_for.mean().round(12).item()
    (40, 0.2, 1.0)

    All points are taken if there are at most `sample`. Otherwise every group gets the same number, or all it has,
    because the forecast for a rare group needs as many points as any other. A point of a larger group then represents
    more points, so that averages over the sample estimate averages over the data. Every group gets at least two points,
    if it has them, so that the sample can be halved.
    """
    if len(data) <= sample:
        return np.arange(len(data)), np.ones(len(data))
    sizes = np.bincount(data.codes, minlength=len(data.groups))
    least = np.minimum(sizes, int(sample / len(sizes)))
    wanted = np.maximum(least, sample * sizes / len(data))
    spare = wanted - least
    wanted = least + spare * max(0.0, (sample - least.sum()) / max(spare.sum(), 1e-300))
    counts = np.minimum(sizes, np.maximum(2, np.floor(wanted + 1e-9).astype(int)))
    rng = np.random.default_rng(seed)
    chosen = [rng.permutation(np.flatnonzero(data.codes == code))[:count] for code, count in enumerate(counts)]
    places = np.sort(np.concatenate(chosen))
    stands_for = (sizes / len(data) * len(places) / np.maximum(counts, 1))[data.codes[places]]
    return places, stands_for


def masses(
    sample: GroupedData,
    stands_for: np.ndarray,
    shares: np.ndarray,
    weights: Mapping[Any, float] | None,
    proportions: Mapping[Any, float] | None,
) -> np.ndarray:
    """Return the weight of every point of the sample in the mean gradient, given group weights and proportions."""
    found = example_weights(sample, weights)
    mass = stands_for if found is None else stands_for * found
    if not mass.any():
        raise ValueError("`weights` should leave something to train on. Found 0 for every point.")
    if proportions is None:
        return mass
    wanted = share_of(sample, proportions)
    empty = (shares == 0) & (wanted > 0)
    if empty.any():
        group = sample.groups[int(np.argmax(empty))]
        raise ValueError(f"`proportions` asks for group {group!r}, of which the training data have no point.")
    return np.asarray(mass * (wanted / np.where(shares > 0, shares, 1.0))[sample.codes])
