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
    """Real images, to train on and to look at: upright and faint (a `share` of the training data), turned and bright.

    The 1,797 images of 8 x 8 pixels are divided into two halves; the first is trained on, the other is looked at in
    both groups alike. The turned group varies more but is rarer: it tends to lead first, the upright one last. `labels`
    are the ten digits, or "large": +1 from 5 on, else -1.

    >>> train, look = digits(share=0.8)
    >>> train.sizes, look.sizes
    ({'turned': 225, 'upright': 900}, {'turned': 897, 'upright': 897})
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
