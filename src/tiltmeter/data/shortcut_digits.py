"""shortcut_digits: handwritten digits with extra pixels that follow the label in most training points."""

from __future__ import annotations

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.public.digits import plain_digits


def shortcut_digits(
    points: int = 1000, held_out: int = 700, aligned: float = 0.95, seed: int = 0
) -> tuple[GroupedData, GroupedData]:
    """Digits below 5 against the others; four more pixels agree with the label in a share `aligned` of the points.

    >>> train, held_out = shortcut_digits()
    >>> train.sizes
    {'aligned': 945, 'conflicting': 55}

    In the held-out points the extra pixels say nothing about the label. The groups are points that agree with the
    shortcut and points that contradict it.

    Args:
        points: Number of training points.
        held_out: Number of held-out points.
        aligned: Share of the training points whose extra pixels agree with the label.
        seed: Seed of the random draws; the same seed gives the same points.
    """
    train, rest = plain_digits()
    pixels, label = np.concatenate([train.x, rest.x]), np.concatenate([train.y, rest.y])
    flat = np.asarray(pixels, dtype=float).reshape(len(pixels), -1)
    flat, label = flat / flat.max(), np.asarray(label)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(flat))

    def part(chosen: np.ndarray, share: float) -> GroupedData:
        y = (label[chosen] >= 5).astype(np.int64)
        mark = np.where(rng.random(len(y)) < share, y, 1 - y)
        x = np.concatenate([flat[chosen], 1.5 * np.repeat((2 * mark - 1)[:, None], 4, axis=1)], axis=1)
        names = np.array(["conflicting", "aligned"])
        return GroupedData(x.astype(np.float32), y, names[(mark == y).astype(int)])

    cut = min(points, int(0.6 * len(order)))
    return part(order[:cut], aligned), part(order[cut : cut + held_out], 0.5)
