"""Matrix sensing: a symmetric matrix seen through random measurements, gradient descent on it, and greedy solutions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Sensing:
    """Measurements <A_i, M> of a positive semi-definite matrix M; the loss is half their mean squared error.

    `operator` is the mean of vec(A_i) vec(A_i)^T, so that the gradient at a product P is operator(P - M).
    """

    target: np.ndarray
    operator: np.ndarray

    def gradient(self, product: np.ndarray) -> np.ndarray:
        """Of the loss with respect to the product."""
        d = len(product)
        return np.asarray((self.operator @ (product - self.target).ravel()).reshape(d, d))


def sensing(d: int, eigenvalues: Sequence[float], measurements: int, seed: int) -> Sensing:
    """Gaussian symmetric measurements, scaled so that their operator is the identity on average.

    >>> task = sensing(4, (2.0, 1.0), 2000, 0)
    >>> bool(np.abs(task.gradient(np.zeros((4, 4))) + task.target).max() < 0.3)
    True
    """
    rng = np.random.default_rng([seed, 0])
    basis = np.linalg.qr(rng.normal(size=(d, d)))[0][:, : len(eigenvalues)]
    matrices = rng.normal(size=(measurements, d, d))
    flat = ((matrices + matrices.transpose(0, 2, 1)) / 2).reshape(measurements, -1)
    return Sensing((basis * np.asarray(eigenvalues)) @ basis.T, flat.T @ flat / measurements)


def descend(task: Sensing, start: np.ndarray, lr: float, steps: int, every: int) -> Iterator[np.ndarray]:
    """The product U U^T at every evaluation of gradient descent on U."""
    u = start.copy()
    for step in range(steps + 1):
        product = u @ u.T
        if step % every == 0:
            yield product
        u -= lr * task.gradient(product) @ u


def greedy_solutions(task: Sensing, most: int, lr: float, steps: int, small: float = 1e-3) -> list[np.ndarray]:
    """Greedy low-rank learning: the best of rank r near that of rank r - 1 and the direction of steepest descent there.

    >>> task = sensing(5, (2.0, 1.0), 5000, 0)
    >>> [int(np.linalg.matrix_rank(one, tol=1e-6)) for one in greedy_solutions(task, 2, 0.05, 2000)]
    [1, 2]
    """
    d = len(task.target)
    u = np.zeros((d, 0))
    found = []
    for _ in range(most):
        gradient = task.gradient(u @ u.T)
        direction = np.linalg.eigh(-(gradient + gradient.T) / 2)[1][:, -1:]
        *_, product = descend(task, np.hstack([u, small * direction]), lr, steps, steps)
        values, vectors = np.linalg.eigh(product)
        keep = np.argsort(values)[-(u.shape[1] + 1) :]
        u = vectors[:, keep] * np.sqrt(np.maximum(values[keep], 0.0))
        found.append(product)
    return found
