"""Gaussian clones: class means with an isotropic, a shared or the class's own covariance (Refinetti et al., 2023)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.synthetic.clones.by_class import fitted_to, redrawn


@dataclass(frozen=True)
class Isotropic:
    """Class means, and the class's average variance in every direction."""

    def __call__(self, data: GroupedData, seed: int = 0, fit: GroupedData | None = None) -> GroupedData:
        rng = np.random.default_rng(seed)

        def draw(rows: np.ndarray, count: int) -> np.ndarray:
            spread = np.sqrt(rows.var(axis=0).mean())
            return np.asarray(rows.mean(axis=0) + spread * rng.normal(size=(count, rows.shape[1])))

        return redrawn(data, fitted_to(data, fit), draw)


@dataclass(frozen=True)
class SharedCovariance:
    """Class means, and one covariance for all classes: that of the points around their class means.

    `ridge` is added to every variance.
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

    `ridge` is added to every variance. If a class has fewer points than coordinates, its covariance is a poor estimate,
    and the clone contains less information than the distribution from which the points came.
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
