"""Decisions of C linear scores: how often an input of one class is decided to be of another, by a smooth rule.

For every cell point the scores are Gaussian, and "score k is the largest" is an orthant of their differences: the same
separation of variables again, 2 (C - 1) Sobol dimensions in all. Ties go to the class that comes first.
"""

from __future__ import annotations

import numpy as np

from tiltmeter.theory.population.classes.moments import ClassMoments, ClassStudents, cell, orthant_probability
from tiltmeter.theory.population.quadrature import Sobol

#: Nodes of one average: an entry is then good to about 4e-5 for three classes and 8e-5 for five.
NODES = Sobol(count=2**11)
#: Students treated at once hold about this many numbers per node and class.
BLOCK = 2**19


def confusion(
    data: ClassMoments, students: ClassStudents, quadrature: Sobol = NODES, diagonal: bool = False
) -> np.ndarray:
    """P(decided k | class c, group g), of shape (n, G, C, C); with `diagonal` only k = c, of shape (n, G, C)."""
    number, count = data.pi.shape
    uniform = quadrature.uniform(2 * (count - 1))
    inputs, scores = uniform[:, : count - 1], uniform[:, count - 1 :]
    size = len(students.W)
    found = np.full((size, number, count, 1 if diagonal else count), np.nan)
    centre = students.scores(data)
    known = np.flatnonzero(np.isfinite(students.Q).all((1, 2)) & np.isfinite(students.W).all((1, 2)))
    block = max(1, BLOCK // (len(uniform) * count))
    for g in range(number):
        D = float(data.D[g])
        for c in range(count):
            points = cell(data.teachers[g], data.offsets[g], data.mu[g], D, c, inputs)
            total = points.weight.sum()
            if total == 0.0:
                continue
            for start in range(0, len(known), block):
                now = known[start : start + block]
                along = students.W[now] @ points.U  # (b, C, k)
                mean = np.sqrt(D) * np.einsum("Nk,bck->bNc", points.v, along) + centre[now, g][:, None, :]
                spread = D * (students.Q[now] - along @ along.transpose(0, 2, 1))
                for place, k in enumerate([c] if diagonal else range(count)):
                    share = _largest(mean, spread, k, scores)
                    found[now, g, c, place] = share @ points.weight / total
    if diagonal:
        return np.asarray(found[..., 0])
    rows = found.sum(3, keepdims=True)
    return np.asarray(found / np.where(rows > 0, rows, 1.0))


def _largest(mean: np.ndarray, spread: np.ndarray, k: int, uniform: np.ndarray) -> np.ndarray:
    """The probability that score k is the largest, for means (b, N, C) and covariances (b, C, C)."""
    count = mean.shape[2]
    others = [j for j in range(count) if j != k]
    difference = np.zeros((count - 1, count))
    difference[:, k] = 1.0
    difference[np.arange(count - 1), others] = -1.0
    root = semidefinite_root(difference @ spread @ difference.T)
    ties = np.array([j > k for j in others])
    return orthant_probability(mean[:, :, [k]] - mean[:, :, others], root, ties, uniform)


def semidefinite_root(matrices: np.ndarray) -> np.ndarray:
    """Lower triangular roots of covariances (n, C, C) that may be singular: a column of no spread is zero."""
    size = matrices.shape[1]
    root = np.zeros_like(matrices)
    for j in range(size):
        left = matrices[:, j, j] - (root[:, j, :j] ** 2).sum(1)
        there = left > 1e-14 * np.maximum(matrices[:, j, j], 1e-300)
        pivot = np.sqrt(np.where(there, left, 0.0))
        root[:, j, j] = pivot
        for i in range(j + 1, size):
            rest = matrices[:, i, j] - (root[:, i, :j] * root[:, j, :j]).sum(1)
            root[:, i, j] = np.where(there, rest / np.where(there, pivot, 1.0), 0.0)
    return root
