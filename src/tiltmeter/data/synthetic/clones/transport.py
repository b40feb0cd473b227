"""Optimal transport between Gaussians: the linear map and its cost in closed form."""

from __future__ import annotations

import numpy as np


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
