"""Features: what the linear theory of a table sees: its columns, and random units of a network that is never trained.

The columns are standardised. Beside them stand units relu(w . x + b) with random weights, standardised as well; of all
together the strongest directions of the pooled second moment are kept, as gradient descent learns these first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

#: Random units, and the directions that are kept of columns and units together.
UNITS, DIRECTIONS = 256, 120
#: The seed of the random units: the same table always has the same preview.
SEED = 0
#: Tables and pictures of more columns than this are first reduced to so many principal components.
MOST_COLUMNS = 400


@dataclass(frozen=True, eq=False)
class Features:
    """A map from points to the features of the theory; a constant one comes last.

    `units` and `offsets` are the random units, `directions` what is kept of columns and units; None: the columns alone.
    `reduction` holds principal components that are taken first.
    """

    middle: np.ndarray
    width: np.ndarray
    reduction: np.ndarray | None = None
    units: np.ndarray | None = None
    offsets: np.ndarray | None = None
    unit_middle: np.ndarray | None = None
    unit_width: np.ndarray | None = None
    directions: np.ndarray | None = None

    def standardised(self, x: np.ndarray) -> np.ndarray:
        """The columns (or their principal components) with mean 0 and variance 1 over the training rows."""
        z = (x - self.middle) / self.width
        return z if self.reduction is None else np.asarray(z @ self.reduction)

    def of(self, x: np.ndarray) -> np.ndarray:
        """The features of points, one row for each.

        >>> points = np.array([[0.0], [2.0]])
        >>> columns(points).of(points).tolist()
        [[-1.0, 1.0], [1.0, 1.0]]
        """
        z = self.standardised(x)
        if self.units is not None:
            high = (self._active(z) - self.unit_middle) / self.unit_width
            z = np.concatenate([z, high], axis=1) @ self.directions
        return np.concatenate([z, np.ones((len(z), 1))], axis=1)

    def _active(self, z: np.ndarray) -> np.ndarray:
        return np.asarray(np.maximum(z @ self.units + self.offsets, 0.0))


def columns(x: np.ndarray) -> Features:
    """The columns alone, standardised by these training rows."""
    middle, width = x.mean(axis=0), x.std(axis=0)
    width = np.where(width < 1e-12 * np.maximum(1.0, np.abs(middle)), 1.0, width)
    if x.shape[1] <= MOST_COLUMNS:
        return Features(middle, width)
    from sklearn.decomposition import PCA

    rows = np.random.default_rng(SEED).permutation(len(x))[:5000]
    few = min(MOST_COLUMNS // 2, len(rows) - 1)
    made = PCA(few, svd_solver="randomized", random_state=SEED, whiten=False).fit((x[rows] - middle) / width)
    scale = np.sqrt(made.explained_variance_.mean())
    return Features(middle, width, made.components_.T / max(scale, 1e-12))


def columns_and_units(x: np.ndarray, count: int = UNITS, kept: int = DIRECTIONS) -> Features:
    """The columns and random units, of which the strongest directions over these training rows are kept."""
    plain = columns(x)
    z = plain.standardised(x)
    rng = np.random.default_rng(SEED)
    units = rng.normal(size=(z.shape[1], count)) / np.sqrt(z.shape[1])
    offsets = rng.normal(size=count) / 2.0
    partly = replace(plain, units=units, offsets=offsets)
    high = partly._active(z)
    middle, width = high.mean(axis=0), high.std(axis=0)
    width = np.where(width < 1e-9, 1.0, width)
    both = np.concatenate([z, (high - middle) / width], axis=1)
    _, vectors = np.linalg.eigh(both.T @ both / len(both))
    return replace(partly, unit_middle=middle, unit_width=width, directions=vectors[:, ::-1][:, :kept])
