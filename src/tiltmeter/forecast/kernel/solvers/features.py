"""Features: the kernels approximated by a linear model with a few hundred weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.forecast.kernel.solvers.lanczos import lanczos

#: How many features are kept.
MOST = 240
#: Eigenvalues of the small matrix below this fraction of the largest are rounding errors.
NOTHING = 1e-11
#: At least this many columns are multiplied with the kernel at once, which costs hardly more than one column.
TOGETHER = 8


@dataclass(frozen=True)
class Features:
    """Rows `sample` (n, r) and `look` (m, r) whose products are the kernels, as nearly as r features allow.

    `dual` (n, r) maps them to the weights of the network: a weight vector v of the features is the displacement
    Jacobian^T dual v of the network. `missing` is the fraction of the trace of the sample's kernel that the features
    lack, 0 if they are exact.
    """

    sample: np.ndarray
    look: np.ndarray
    dual: np.ndarray
    missing: float

    def at(self, rows: np.ndarray) -> Features:
        """The same features of some points of the sample; `dual`, which needs all of them, is left out."""
        return Features(self.sample[rows], self.look, self.dual[:0], self.missing)


def features(kernel: np.ndarray, cross: np.ndarray, start: np.ndarray, most: int = MOST) -> Features:
    """Return the features that matter for gradient descent with the first pulls `start` (n, k).

    >>> points = np.random.default_rng(0).normal(size=(50, 3))
    >>> found = features(points @ points.T, points[:4] @ points.T, points[:, :1] ** 2)
    >>> found.sample.shape[1], bool(np.allclose(found.look @ found.sample.T, points[:4] @ points.T))
    (3, True)

    They span start, K start, K^2 start, ..., where gradient descent begins to move. The features are the orthogonal
    projection of the network's gradients on this space (Nystroem's approximation), so their kernel never exceeds the
    exact one.
    """
    size = len(kernel)
    begin = start
    if start.shape[1] < TOGETHER:
        noise = np.random.default_rng(0).normal(size=(size, TOGETHER - start.shape[1]))
        begin = np.concatenate([start, noise * max(1e-300, float(np.abs(start).mean()))], axis=1)
    space = lanczos(lambda v: kernel @ v, begin, lambda _: False, most)
    values, vectors = space.modes()
    kept = values > NOTHING * values.max(initial=0.0)
    turn = vectors[:, kept] / np.sqrt(values[kept])
    rows = space.image() @ turn
    trace = float(np.trace(kernel))
    # Sorted by length, without features that the kernel does not have, so that they can be truncated.
    squares, turned = np.linalg.eigh(rows.T @ rows)
    axes = turned.T[::-1][squares[::-1] > NOTHING * squares.max(initial=0.0)]
    rows, dual = rows @ axes.T, space.basis @ (turn @ axes.T)
    return Features(rows, cross @ dual, dual, max(0.0, 1.0 - float((rows**2).sum()) / trace))
