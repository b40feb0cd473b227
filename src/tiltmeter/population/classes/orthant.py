"""Orthants of a Gaussian by separation of variables (Genz 1992): smooth weights and points inside, from Sobol nodes.

To have A v + o > 0 for normal v, write A = L U' with L lower triangular and U orthonormal: then the coordinates v_i are
truncated one after the other, each by inverting the normal distribution function of a uniform node.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

#: A row this small, relative to the largest, adds no direction of its own.
DEPENDENT = 1e-10


def triangular(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L (rows x rank), an orthonormal U (columns) with rows = L U', and which column is new in each row, or -1.

    >>> L, U, new = triangular(np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 1.0]]))
    >>> new.tolist(), np.allclose(L @ U.T, [[2, 0], [1, 1], [0, 1]])
    ([0, 1, -1], True)
    """
    scale = float(np.abs(rows).max(initial=0.0)) or 1.0
    basis: list[np.ndarray] = []
    lower, new = np.zeros((len(rows), min(rows.shape))), np.full(len(rows), -1)
    for i, row in enumerate(rows):
        rest = row.astype(float).copy()
        for _ in range(2):  # the second pass removes the rounding of the first
            for j, direction in enumerate(basis):
                along = float(rest @ direction)
                lower[i, j] += along
                rest = rest - along * direction
        length = float(np.linalg.norm(rest))
        if length > DEPENDENT * scale:
            lower[i, len(basis)], new[i] = length, len(basis)
            basis.append(rest / length)
    U = np.stack(basis, axis=1) if basis else np.zeros((rows.shape[1], 0))
    return lower[:, : len(basis)], U, new


def points_inside(
    lower: np.ndarray, new: np.ndarray, offset: np.ndarray, uniform: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Points v (N, rank) with lower v + offset > 0, and their weights; the mean weight is the probability."""
    count, rank = len(uniform), lower.shape[1]
    v, weight = np.zeros((count, rank)), np.ones(count)
    for i, place in enumerate(new):
        reach = offset[i] + v @ lower[i]
        if place < 0:
            weight = weight * (reach > 0.0)
            continue
        share = ndtr(reach / lower[i, place])
        v[:, place] = -ndtri(np.maximum(uniform[:, place] * share, 1e-300))
        weight = weight * share
    return v, weight


def orthant_probability(mean: np.ndarray, root: np.ndarray, ties: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """P(mean + root e > 0) for normal e, for many means (n, N, C) and lower triangular roots (n, C, C).

    Where a score has no spread, it is counted as it is; a difference of exactly zero counts where `ties` (C) says so.
    """
    share = np.ones(mean.shape[:2])
    e = np.zeros_like(mean)
    last = mean.shape[2] - 1
    for i in range(last + 1):
        reach = mean[:, :, i] + np.einsum("nNj,nj->nN", e[:, :, :i], root[:, i, :i])
        width = root[:, i, i][:, None]
        flat = width <= 1e-14
        now = np.where(flat, (reach > 0.0) | (ties[i] & (reach == 0.0)), ndtr(reach / np.where(flat, 1.0, width)))
        share = share * now
        if i < last:
            e[:, :, i] = np.where(flat, 0.0, -ndtri(np.maximum(uniform[None, :, i] * now, 1e-300)))
    return share
