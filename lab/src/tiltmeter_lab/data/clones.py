"""Clones: data sets that share chosen statistics with the original data, and edits that move one class to another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tiltmeter.data.grouped import GroupedData

#: Makes this number of points from the rows of one class.
Draw = Callable[[np.ndarray, int], np.ndarray]


class Clone(Protocol):
    """Makes new points in place of the data's, from the statistics of `fit` (by default, of the data themselves).

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> def averages(data, seed=0, fit=None):  # every point becomes the mean of its class
    ...     rows = np.stack([data.x[data.y == label].mean(axis=0) for label in data.y])
    ...     return GroupedData(rows, data.y, "label")
    >>> data = GroupedData(np.eye(2)[[0, 1] * 60], [0, 1] * 60, "label")
    >>> measure = lab.measures.CloneAccuracy({"averages": averages})
    >>> lab.measure(measure, torch.nn.Linear(2, 2), data)["clone_accuracy"].clone.values.tolist()
    ['real', 'averages']
    """

    def __call__(self, data: GroupedData, seed: int = 0, fit: GroupedData | None = None) -> GroupedData: ...


def flat(data: GroupedData) -> np.ndarray:
    """The points as rows of numbers; all channels and pixels of an image together."""
    x = np.asarray(data.x)
    if x.dtype.kind != "f":
        raise TypeError(f"Clones need points made of real numbers, not of tokens or counts. Found x of type {x.dtype}.")
    return x.reshape(len(x), -1).astype(np.float64)


def by_class(data: GroupedData) -> dict[float, np.ndarray]:
    """Label -> its points as rows; raises an error if the labels are not classes.

    >>> data = GroupedData(np.zeros((90, 2)), [0, 1, 1] * 30, [0] * 90)
    >>> {label: rows.shape for label, rows in by_class(data).items()}
    {0: (30, 2), 1: (60, 2)}
    """
    labels = data.labels
    if data.y.dtype.kind == "f" and not (labels == np.round(labels)).all():
        raise ValueError("Clones need classes. Found labels that are real numbers.")
    points = flat(data)
    return {label: points[data.y == label] for label in labels.tolist()}


def fitted_to(data: GroupedData, fit: GroupedData | None) -> dict[float, np.ndarray]:
    """The points by class to which a clone is fitted, checked: those of `fit`, otherwise the data's own."""
    if fit is None:
        return by_class(data)
    if np.shape(fit.x)[1:] != np.shape(data.x)[1:]:
        raise ValueError(
            f"`fit` should have points of the data's shape, {np.shape(data.x)[1:]}. Found {np.shape(fit.x)[1:]}."
        )
    sources = by_class(fit)
    for label in data.labels.tolist():
        if label not in sources:
            raise ValueError(f"`fit` should have points of every label of the data. Found none with y = {label:g}.")
    return sources


def redrawn(data: GroupedData, sources: dict[float, np.ndarray], draw: Draw) -> GroupedData:
    """New points for every label of the data, with the same labels, groups and weights in the same order.

    Because the order of labels is the same, runs on data and clone can be compared step by step: their batches have the
    same labels.
    """
    points = np.empty_like(flat(data))
    for label in data.labels.tolist():
        places = np.flatnonzero(data.y == label)
        points[places] = draw(sources[label], len(places))
    return replaced(data, points)


def replaced(data: GroupedData, points: np.ndarray, y: np.ndarray | None = None) -> GroupedData:
    """The same groups and weights with other points, and other labels if given."""
    shape, kind = np.shape(data.x), np.asarray(data.x).dtype
    part = data.take(np.arange(len(data)))
    labels = part.y if y is None else y.astype(data.y.dtype)
    part._set(points.reshape(shape).astype(kind), labels, part.codes, part.groups, part.weights)
    return part


#: Means closer than this to a face of the unit cube are moved to this distance: their density would be a spike.
NEAREST = 0.003


@dataclass(frozen=True)
class MaxEntropyCube:
    """Independent coordinates between `low` and `high` with densities exp(-b x) that have the class means.

    >>> data = GroupedData(np.full((4000, 1), 0.1), [0] * 4000, [0] * 4000)
    >>> MaxEntropyCube()(data).x.mean().round(2).item()
    0.1
    """

    low: float = 0.0
    high: float = 1.0

    def __call__(self, data: GroupedData, seed: int = 0, fit: GroupedData | None = None) -> GroupedData:
        if not self.low < self.high:
            raise ValueError(f"`low` should be below `high`. Found low = {self.low}, high = {self.high}.")
        sources = fitted_to(data, fit)
        seen = [float(part.min()) for part in sources.values()] + [float(part.max()) for part in sources.values()]
        if min(seen) < self.low or max(seen) > self.high:
            raise ValueError(
                f"Points should lie between `low` and `high`. Found {min(seen):g} to {max(seen):g} for low = "
                f"{self.low:g}, high = {self.high:g}."
            )
        rng = np.random.default_rng(seed)

        def draw(rows: np.ndarray, count: int) -> np.ndarray:
            mean = (rows.mean(axis=0) - self.low) / (self.high - self.low)
            return self.low + (self.high - self.low) * _sample(tilt(mean), count, rng)

        return redrawn(data, sources, draw)


def tilt(mean: np.ndarray) -> np.ndarray:
    """The b for which the density exp(-b x) on [0, 1] has this mean: 1/b - 1/(e^b - 1) = mean.

    >>> tilt(np.array([0.5, 0.1, 0.9])).round(3).tolist()
    [0.0, 9.995, -9.995]
    """
    inside = np.clip(mean, NEAREST, 1 - NEAREST)
    # The mean falls from 1/2 to 0 as b grows from 0; for means above 1/2 the density is mirrored.
    folded = np.minimum(inside, 1 - inside)
    low, high = np.zeros_like(folded), np.full_like(folded, 1 / NEAREST)
    for _ in range(60):
        middle = (low + high) / 2
        above = _mean(middle) > folded
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray(np.where(inside <= 0.5, low, -low))


def _mean(b: np.ndarray) -> np.ndarray:
    safe = np.maximum(b, 1e-3)
    return np.where(b > 1e-3, 1 / safe - 1 / np.expm1(safe), 0.5 - b / 12)


def _sample(b: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    uniform = rng.random((count, len(b)))
    steep = np.maximum(np.abs(b), 1e-9)
    falling = np.where(np.abs(b) > 1e-9, -np.log1p(uniform * np.expm1(-steep)) / steep, uniform)
    return np.where(b >= 0, falling, 1 - falling)


@dataclass(frozen=True)
class Isotropic:
    """Class means, and the class's average variance in every direction.

    >>> x = np.random.default_rng(0).normal(size=(5000, 2)) * [1.0, 3.0]
    >>> clone = Isotropic()(GroupedData(x, np.zeros(5000, dtype=int), np.zeros(5000)))
    >>> x.std(axis=0).round(1), clone.x.std(axis=0).round(1)
    (array([1., 3.]), array([2.2, 2.2]))
    """

    def __call__(self, data: GroupedData, seed: int = 0, fit: GroupedData | None = None) -> GroupedData:
        rng = np.random.default_rng(seed)

        def draw(rows: np.ndarray, count: int) -> np.ndarray:
            spread = np.sqrt(rows.var(axis=0).mean())
            return np.asarray(rows.mean(axis=0) + spread * rng.normal(size=(count, rows.shape[1])))

        return redrawn(data, fitted_to(data, fit), draw)


@dataclass(frozen=True)
class SharedCovariance:
    """Class means, and one covariance for all classes: that of the points around their class means.

    >>> y = np.repeat([0, 1], 5000)
    >>> x = np.random.default_rng(0).normal(size=(10000, 1)) * np.where(y == 0, 1.0, 3.0)[:, None]
    >>> clone = SharedCovariance()(GroupedData(x, y, np.zeros(10000)))
    >>> [clone.x[y == label].std().round(1).item() for label in (0, 1)]  # 1 and 3 in the data
    [2.2, 2.2]

    Args:
        ridge: Added to every variance.
    """

    ridge: float = 0.0

    def __call__(self, data: GroupedData, seed: int = 0, fit: GroupedData | None = None) -> GroupedData:
        rng = np.random.default_rng(seed)
        sources = fitted_to(data, fit)
        around = np.concatenate([rows - rows.mean(axis=0) for rows in sources.values()])
        return redrawn(
            data, sources, lambda rows, count: rows.mean(axis=0) + _noise(around, count, _checked(self.ridge), rng)
        )


@dataclass(frozen=True)
class ClassCovariance:
    """Class means and full class covariances, including those between the channels of an image.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(5000, 1)) * np.array([1.0, 1.0])
    >>> clone = ClassCovariance()(GroupedData(x, np.zeros(5000, dtype=int), np.zeros(5000)))
    >>> np.corrcoef(clone.x.T)[0, 1].round(3).item()
    1.0

    If a class has fewer points than coordinates, its covariance is a poor estimate, and the clone contains less
    information than the distribution from which the points came.

    Args:
        ridge: Added to every variance.
    """

    ridge: float = 0.0

    def __call__(self, data: GroupedData, seed: int = 0, fit: GroupedData | None = None) -> GroupedData:
        rng = np.random.default_rng(seed)

        def draw(rows: np.ndarray, count: int) -> np.ndarray:
            mean = rows.mean(axis=0)
            return np.asarray(mean + _noise(rows - mean, count, _checked(self.ridge), rng))

        return redrawn(data, fitted_to(data, fit), draw)


def _noise(around: np.ndarray, count: int, ridge: float, rng: np.random.Generator) -> np.ndarray:
    """Gaussian points whose covariance is that of the centred rows `around` plus `ridge`.

    Random sums of the rows have exactly that covariance, so with more coordinates than rows no d x d matrix is built.
    With fewer coordinates, the triangular factor of the rows is used instead.
    """
    scale = np.sqrt(len(around))
    if len(around) > around.shape[1]:
        around = np.asarray(np.linalg.qr(around, mode="r"))
    noise = rng.normal(size=(count, len(around))) @ around / scale
    if ridge:
        noise = noise + np.sqrt(ridge) * rng.normal(size=noise.shape)
    return np.asarray(noise)


def _checked(ridge: float) -> float:
    if not 0 <= ridge < np.inf:
        raise ValueError(f"`ridge` should not be negative. Found ridge = {ridge}.")
    return ridge


@dataclass(frozen=True)
class IndependentMarginals:
    """Within a class, the values of every coordinate are permuted, separately for each coordinate.

    >>> data = GroupedData(np.arange(60.0)[:, None] * [1.0, 1.0], [0] * 60, [0] * 60)
    >>> clone = IndependentMarginals()(data)
    >>> bool((np.sort(clone.x, axis=0) == data.x).all()), bool((clone.x[:, 0] == clone.x[:, 1]).all())
    (True, False)

    Values are drawn without replacement, so that a clone of the data themselves has exactly their marginals. There is
    no grid of quantiles, which would use the extremes too often.
    """

    def __call__(self, data: GroupedData, seed: int = 0, fit: GroupedData | None = None) -> GroupedData:
        rng = np.random.default_rng(seed)

        def draw(rows: np.ndarray, count: int) -> np.ndarray:
            enough = np.tile(rows, (-(-count // len(rows)), 1))
            return np.asarray(rng.permuted(enough, axis=0)[:count])

        return redrawn(data, fitted_to(data, fit), draw)


def transport_map(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The symmetric matrix T with T source T = target that moves points least: S^-1/2 (S^1/2 K S^1/2)^1/2 S^-1/2.

    >>> transport_map(np.diag([1.0, 4.0]), np.diag([9.0, 1.0])).round(6).tolist()
    [[3.0, 0.0], [0.0, 0.5]]

    Where the source covariance is singular T is zero, so T source T equals `target` only in the directions of the
    source.
    """
    root, inverse = _roots(source)
    return np.asarray(inverse @ _roots(root @ target @ root)[0] @ inverse)


def transport_cost(source_mean: np.ndarray, source: np.ndarray, target_mean: np.ndarray, target: np.ndarray) -> float:
    """Squared Wasserstein-2 distance of two Gaussians.

    >>> transport_cost(np.zeros(1), np.eye(1), np.array([3.0]), 4 * np.eye(1))
    10.0
    """
    root, _ = _roots(source)
    shared = _roots(root @ target @ root)[0]
    away = np.asarray(target_mean - source_mean)
    return float(away @ away + np.trace(source) + np.trace(target) - 2 * np.trace(shared))


def _roots(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Square root and inverse square root of a symmetric positive semi-definite matrix, the latter on its range."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    level = values[-1] * len(values) * np.finfo(float).eps if values[-1] > 0 else 0.0
    root = np.sqrt(np.where(values > level, values, 0.0))
    inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    return (vectors * root) @ vectors.T, (vectors * inverse) @ vectors.T


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


__all__ = [
    "ClassCovariance",
    "Clone",
    "GaussianTransport",
    "IndependentMarginals",
    "Isotropic",
    "MaxEntropyCube",
    "MeanShift",
    "QuantileEdit",
    "SharedCovariance",
]
