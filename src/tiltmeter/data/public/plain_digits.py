"""plain_digits: handwritten digits that come with scikit-learn, some of them with wrong labels."""

from __future__ import annotations

import numpy as np

from tiltmeter.data.grouped import GroupedData


def plain_digits(points: int = 900, noise: float = 0.0, seed: int = 0) -> tuple[GroupedData, GroupedData]:
    """Images of 8 x 8 pixels, for training and held-out; a share `noise` of the training labels is wrong, at random.

    >>> train, look = plain_digits(noise=0.2)
    >>> train.sizes, len(look)
    ({'right': 720, 'wrong': 180}, 897)

    Pixels lie between 0 and 1, minus their mean. Groups are "right" and "wrong" labels. The held-out part has only
    right labels, and is the same for any number of points and any noise.
    """
    from sklearn.datasets import load_digits

    if not 0 < points <= 900:
        raise ValueError(f"`points` should lie between 1 and 900. Found points = {points}.")
    if not 0 <= noise < 1:
        raise ValueError(f"`noise` should be a share from 0 to below 1. Found noise = {noise}.")
    bunch = load_digits()
    x = (bunch.images / 16.0 - (bunch.images / 16.0).mean()).reshape(-1, 64).astype(np.float32)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(x))
    first, second = order[:points], order[900:]
    y = bunch.target[first].copy()
    wrong = rng.permutation(points)[: round(noise * points)]
    # Shifted by 1 to 9: never the right label.
    y[wrong] = (y[wrong] + rng.integers(1, 10, len(wrong))) % 10
    group = np.where(np.isin(np.arange(points), wrong), "wrong", "right")
    return GroupedData(x[first], y, group), GroupedData(x[second], bunch.target[second], ["right"] * len(second))
