"""digits: handwritten digits that come with scikit-learn, as two groups of unequal share and contrast."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tiltmeter.data.grouped import GroupedData


def digits(
    share: float = 0.8,
    contrast: tuple[float, float] = (0.4, 1.6),
    seed: int = 0,
    labels: Literal["digit", "large"] = "digit",
) -> tuple[GroupedData, GroupedData]:
    """Real images, for training and held-out: upright and faint (a `share` of the training data), or turned and bright.

    >>> train, look = digits(share=0.8)
    >>> train.sizes, look.sizes
    ({'turned': 225, 'upright': 900}, {'turned': 897, 'upright': 897})

    The 1,797 images of 8 x 8 pixels are divided into two halves. The first half is for training; the second is the
    held-out part and appears in both groups. The turned group varies more but is rarer: it tends to lead first, and the
    upright group leads at the end. `labels` are the ten digits, or "large": +1 for 5 and above, otherwise -1.
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
