"""digits: handwritten digits that come with scikit-learn, as two groups of unequal share and contrast."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tiltmeter.data.grouped import GroupedData


def plain_digits(points: int = 900, noise: float = 0.0, seed: int = 0) -> tuple[GroupedData, GroupedData]:
    """Images of 8 x 8 pixels, for training and held-out; a share `noise` of the training labels is wrong, at random.

    >>> train, held_out = plain_digits(noise=0.2)
    >>> train.sizes, len(held_out)
    ({'right': 720, 'wrong': 180}, 897)

    Pixels lie between 0 and 1, minus their mean. Groups are "right" and "wrong" labels. The held-out part has only
    right labels, and is the same for any number of points and any noise.

    Args:
        points: Number of training points.
        noise: Share of the training labels that is wrong.
        seed: Seed of the random draws; the same seed gives the same points.
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


def digits(
    share: float = 0.8,
    contrast: tuple[float, float] = (0.4, 1.6),
    seed: int = 0,
    labels: Literal["digit", "large"] = "digit",
) -> tuple[GroupedData, GroupedData]:
    """Real images, for training and held-out: upright and faint (a `share` of the training data), or turned and bright.

    >>> train, held_out = digits(share=0.8)
    >>> train.sizes, held_out.sizes
    ({'turned': 225, 'upright': 900}, {'turned': 897, 'upright': 897})

    The 1,797 images of 8 x 8 pixels are divided into two halves. The first half is for training; the second is the
    held-out part and appears in both groups. The turned group varies more but is rarer: it tends to lead first, and the
    upright group leads at the end.

    Args:
        share: Share of upright images among the training points.
        contrast: Factors on the pixels of upright and of turned images.
        seed: Seed of the random draws; the same seed gives the same points.
        labels: "digit" for the ten digits, "large" for +1 from 5 on and otherwise -1.
    """
    from sklearn.datasets import load_digits

    if not 0.5 <= share < 1:
        raise ValueError(f"`share` should be at least 0.5 and below 1. Found share = {share}.")
    if labels not in ("digit", "large"):
        raise ValueError(f'`labels` should be "digit" or "large". Found labels = {labels!r}.')
    bunch = load_digits()
    target = bunch.target if labels == "digit" else np.where(bunch.target >= 5, 1.0, -1.0)
    images = bunch.images / 16.0 - (bunch.images / 16.0).mean()
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(images))
    first, second = order[:900], order[900:]
    rare = rng.permutation(first)[: round(len(first) * (1.0 - share) / share)]
    upright, turned = images * contrast[0], np.rot90(images, 1, (1, 2)) * contrast[1]

    def both(up: np.ndarray, down: np.ndarray) -> GroupedData:
        x = np.concatenate([upright[up], turned[down]]).reshape(-1, 64).astype(np.float32)
        y = np.concatenate([target[up], target[down]])
        return GroupedData(x, y, np.repeat(["upright", "turned"], [len(up), len(down)]))

    return both(first, rare), both(second, second)
