"""slabs: coordinates of different complexity that all predict the label (Shah et al., 2020)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tiltmeter.data.grouped import GroupedData

#: Number of slabs -> for each distance from the centre, the label there and its share of that label.
SLABS: dict[int, tuple[tuple[int, float], ...]] = {
    3: ((0, 1.0), (1, 1.0)),
    5: ((0, 3 / 4), (1, 1.0), (0, 1 / 4)),
    7: ((0, 1 / 2), (1, 7 / 8), (0, 1 / 2), (1, 1 / 8)),
}


def linear_and_slabs(d: int, k: int = 5) -> tuple[int, ...]:
    """The kinds of LMS-k: one linear coordinate, then d - 1 coordinates of k slabs.

    >>> linear_and_slabs(4)
    (1, 5, 5, 5)

    Args:
        d: Number of dimensions.
        k: Number of slabs: 3, 5 or 7.
    """
    return (1, *[k] * (d - 1))


def five_and_seven(d: int) -> tuple[int, ...]:
    """The kinds of MS-(5,7): one coordinate of 5 slabs, then d - 1 of 7; no linear rule is better than chance.

    >>> five_and_seven(3)
    (5, 7, 7)
    """
    return (5, *[7] * (d - 1))


def slabs(
    kinds: Sequence[int], points: int, margin: float = 0.1, basis: np.ndarray | None = None, seed: int = 0
) -> GroupedData:
    """Points in [-1, 1]^d in which each coordinate alone determines the label, 0 or 1; both labels are equally
    frequent.

    >>> data = slabs(linear_and_slabs(3), 1000)
    >>> data.x.shape, data.sizes, bool(np.all((data.x[:, 0] > 0) == data.y))
    ((1000, 3), {0: 500, 1: 500}, True)

    A coordinate of kind 1 is linear. One of kind k = 3, 5, 7 alternates labels over k slabs of equal width, so that no
    linear rule on it beats chance. Points keep a distance `margin` from the borders. Given the label, coordinates are
    independent. With a `basis` (orthonormal rows, for example from `random_basis`) coordinate i is the one along row i.
    Groups are the labels.

    Args:
        kinds: For every coordinate, 1 for a linear one or the number of its slabs.
        points: Number of points.
        margin: Distance of the points from the borders of slabs.
        basis: Orthonormal rows; coordinate i is the one along row i. None: the axes.
        seed: Seed of the random draws; the same seed gives the same points.
    """
    if not kinds or any(kind not in (1, *SLABS) for kind in kinds):
        raise ValueError(f"`kinds` should be 1 (linear) or slabs of {', '.join(map(str, SLABS))}. Found {list(kinds)}.")
    if not 0 <= margin < 1 / 6:
        raise ValueError(f"`margin` should be at least 0 and below 1/6. Found margin = {margin}.")
    if points < 2:
        raise ValueError(f"`points` should be at least 2. Found points = {points}.")
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(points) % 2)
    x = np.stack([_coordinate(kind, y, margin, rng) for kind in kinds], axis=1)
    if basis is not None:
        if basis.shape != (len(kinds), len(kinds)):
            raise ValueError(f"`basis` should be {len(kinds)} rows of {len(kinds)}. Found shape {basis.shape}.")
        x = x @ basis
    return GroupedData(x.astype(np.float32), y, y)


def random_basis(d: int, seed: int = 0) -> np.ndarray:
    """Orthonormal rows in uniformly random directions.

    >>> basis = random_basis(5)
    >>> bool(np.allclose(basis @ basis.T, np.eye(5)))
    True

    Args:
        d: Number of dimensions.
        seed: Seed of the random draws; the same seed gives the same points.
    """
    q, r = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))
    return np.asarray(q * np.sign(np.diag(r)))


def _coordinate(kind: int, y: np.ndarray, margin: float, rng: np.random.Generator) -> np.ndarray:
    place = rng.random(len(y))
    if kind == 1:
        return np.asarray((2 * y - 1) * (margin + (1 - margin) * place))
    width = (2 - 2 * (kind - 1) * margin) / kind
    distance = np.zeros(len(y))
    for label in (0, 1):
        choices = [i for i, (own, _) in enumerate(SLABS[kind]) if own == label]
        shares = [SLABS[kind][i][1] for i in choices]
        mine = y == label
        distance[mine] = rng.choice(choices, size=int(mine.sum()), p=shares)
    sign = rng.choice([-1.0, 1.0], size=len(y))
    return np.asarray(sign * (distance * (width + 2 * margin) + width * (place - 0.5)))
