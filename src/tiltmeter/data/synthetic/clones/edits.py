"""Edits: points moved so that some statistics of their class become those of another (Belrose et al., 2024).

An edited point has the label of its *target* class. A model that predicts the target class uses the statistics that
were moved; a model that predicts the source class uses the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.synthetic.clones.by_class import fitted_to, flat, replaced
from tiltmeter.data.synthetic.clones.transport import transport_map

#: Moves points, given the rows of their class and those of the target class.
Move = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class MeanShift:
    """Edit: the class mean becomes that of the target class."""

    def __call__(self, data: GroupedData, seed: int = 0, fit: GroupedData | None = None) -> GroupedData:
        def move(points: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
            return np.asarray(points - source.mean(axis=0) + target.mean(axis=0))

        return _edited(data, seed, fit, move)


@dataclass(frozen=True)
class GaussianTransport:
    """Edit: mean and covariance become those of the target class, by the linear map that moves points least.

    Exact if a class has more points than coordinates and no coordinate is constant; directions without variance in the
    source class stay so. Points that it was not fitted to (`fit`) may be moved very far where the source class hardly
    varies. Needs one eigendecomposition of size d x d per pair of classes.
    """

    def __call__(self, data: GroupedData, seed: int = 0, fit: GroupedData | None = None) -> GroupedData:
        def move(points: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
            matrix = transport_map(_covariance(source), _covariance(target))
            return np.asarray((points - source.mean(axis=0)) @ matrix + target.mean(axis=0))

        return _edited(data, seed, fit, move)


@dataclass(frozen=True)
class QuantileEdit:
    """Edit: the distribution of every coordinate becomes that of the target class, for each coordinate separately.

    Equal values, such as the zeros of a dark pixel, are spread at random over the quantiles that they share. Quantiles
    are those between the points, never 0 or 1 themselves, so that extremes are not used more often than they occur.
    """

    def __call__(self, data: GroupedData, seed: int = 0, fit: GroupedData | None = None) -> GroupedData:
        rng = np.random.default_rng([seed, 1])

        def move(points: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
            moved = np.empty_like(points)
            for column in range(points.shape[1]):
                own, other = np.sort(source[:, column]), np.sort(target[:, column])
                low = np.searchsorted(own, points[:, column], "left").astype(float)
                high = np.searchsorted(own, points[:, column], "right").astype(float)
                between = low == high  # a value that the source class does not have
                low, high = np.where(between, low - 0.5, low), np.where(between, high + 0.5, high)
                share = (low + (high - low) * rng.random(len(points))) / len(own)
                place = np.clip((share * len(other)).astype(int), 0, len(other) - 1)
                moved[:, column] = other[place]
            return moved

        return _edited(data, seed, fit, move)


def other_classes(y: np.ndarray, shares: dict[float, float], seed: int) -> np.ndarray:
    """A target class for every label: never its own; the others in proportion to their shares.

    >>> set(other_classes(np.zeros(50, dtype=int), {0: 0.5, 1: 0.3, 2: 0.2}, seed=0).tolist())
    {1, 2}
    """
    if len(shares) < 2:
        raise ValueError(f"Moving points to another class needs at least two classes. Found {len(shares)}.")
    rng = np.random.default_rng(seed)
    target = np.empty_like(y)
    for label in np.unique(y).tolist():
        others = [other for other in shares if other != label]
        weights = np.array([shares[other] for other in others])
        mine = y == label
        target[mine] = rng.choice(others, size=int(mine.sum()), p=weights / weights.sum())
    return target


def _edited(data: GroupedData, seed: int, fit: GroupedData | None, move: Move) -> GroupedData:
    sources = fitted_to(data, fit)
    target = other_classes(data.y, {label: float(len(rows)) for label, rows in sources.items()}, seed)
    points = flat(data)
    moved = np.empty_like(points)
    for label in data.labels.tolist():
        for other in sources:
            places = np.flatnonzero((data.y == label) & (target == other))
            if len(places):
                moved[places] = move(points[places], sources[label], sources[other])
    return replaced(data, moved, target)


def _covariance(rows: np.ndarray) -> np.ndarray:
    around = rows - rows.mean(axis=0)
    return np.asarray(around.T @ around / len(rows))
