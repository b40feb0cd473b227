"""Lanczos: functions of a large symmetric matrix, applied to a few vectors within a small subspace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Product = Callable[[np.ndarray], np.ndarray]

#: Directions shorter than this, relative to the largest product seen, are rounding errors.
NOTHING = 1e-13
#: Passes over the matrix between two checks whether to stop.
ASKED = 4


@dataclass(frozen=True)
class Krylov:
    """An orthonormal `basis` (size, m) and the matrix restricted to it, `inside` (m, m).

    With A the matrix, A basis = basis inside + beyond outside: A maps only the last block of basis vectors out of the
    space, into the directions `beyond` (size, k) with the factor `outside` (k, last block). Both are empty when the
    space is invariant; then functions of A are exact in it. `start` holds the coefficients of the first vectors.
    """

    basis: np.ndarray
    inside: np.ndarray
    start: np.ndarray
    beyond: np.ndarray
    outside: np.ndarray
    passes: int

    def modes(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues and eigenvectors of the matrix inside."""
        values, vectors = np.linalg.eigh(self.inside)
        return values, vectors

    def image(self) -> np.ndarray:
        """A basis."""
        found: np.ndarray = self.basis @ self.inside
        if self.beyond.shape[1]:
            found[:, -self.outside.shape[1] :] += self.beyond @ self.outside
        return found

    def leak(self, coefficients: np.ndarray) -> float:
        """The length of A v outside the space, for the vectors v = basis @ coefficients (largest over vectors)."""
        if not np.isfinite(coefficients).all():
            return np.inf
        with np.errstate(over="ignore", invalid="ignore"):  # it grows without bound if gradient descent diverges
            lost = np.tensordot(self.outside, coefficients[-self.outside.shape[1] :], axes=1)
            return float(np.linalg.norm(lost, axis=0).max(initial=0.0))


def lanczos(product: Product, start: np.ndarray, stop: Callable[[Krylov], bool], largest: int | None = None) -> Krylov:
    """Grow the space spanned by start, A start, A^2 start, ... until `stop` returns True.

    >>> matrix = np.diag([1.0, 2.0, 5.0])
    >>> space = lanczos(lambda v: matrix @ v, np.ones((3, 1)), lambda krylov: False)
    >>> space.modes()[0].round(12).tolist()
    [1.0, 2.0, 5.0]

    This is the block Lanczos method. Every new block is orthogonalised twice against all previous ones, so that
    eigenvalues are not duplicated. Directions already in the space are dropped, so a matrix of low rank ends it early.
    """
    size = len(start)
    largest = size if largest is None else min(largest, size)
    block, _ = _fresh(np.empty((size, 0)), start, float(np.sqrt((start**2).sum(0)).max(initial=0.0)))
    basis = np.empty((size, max(block.shape[1], 1) * 8))
    inside = np.zeros((0, 0))
    used, passes, scale = 0, 0, 0.0
    while True:
        width = block.shape[1]
        if used + width > basis.shape[1]:
            basis = np.concatenate([basis, np.empty_like(basis)], 1)
        basis[:, used : used + width] = block
        used += width
        image = product(block)
        passes += 1
        scale = max(scale, float(np.sqrt((image**2).sum(0)).max(initial=0.0)))
        known = basis[:, :used]
        column = known.T @ image
        wider = np.zeros((used, used))
        wider[: used - width, : used - width] = inside
        wider[:, used - width :] = column
        wider[used - width :, :] = column.T
        inside = wider
        block, factor = _fresh(known, image, scale)
        krylov = Krylov(known, (inside + inside.T) / 2, known.T @ start, block, factor, passes)
        if not block.shape[1] or used >= largest or (passes % ASKED == 0 and stop(krylov)):
            return krylov


def _fresh(known: np.ndarray, vectors: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """The new directions among these vectors, orthonormal, and the factor with vectors = known part + new @ factor."""
    rest = vectors - known @ (known.T @ vectors)
    rest -= known @ (known.T @ rest)
    left, sizes, _ = np.linalg.svd(rest, full_matrices=False)
    kept = sizes > NOTHING * max(scale, np.finfo(float).tiny) * np.sqrt(len(vectors))
    fresh = left[:, kept]
    if fresh.shape[1]:
        # Short remainders are mostly rounding errors of the long part: orthogonalise a second time.
        fresh = np.linalg.qr(fresh - known @ (known.T @ fresh))[0]
    return fresh, fresh.T @ rest
