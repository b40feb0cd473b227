"""ClassMoments: how often each class occurs in each group, and the first two moments of its inputs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from tiltmeter.theory.population.quadrature import Sobol
from tiltmeter.theory.problem.class_mixture import ClassMixture

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


#: Nodes for the moments; they are computed once per problem.
NODES = Sobol(count=2**14)


@dataclass(frozen=True)
class Cell:
    """The inputs of one class in one group: points `v` with `weight`, along the columns of U; z = U v there."""

    U: np.ndarray  # (r, k)
    v: np.ndarray  # (N, k)
    weight: np.ndarray  # (N,)


@dataclass(frozen=True)
class ClassMoments:
    """Arrays over G groups and C classes, in coordinates of the r directions of means and teachers.

    pi = P(y = c | g), J = E[1_c z], K = E[1_c z z'], for normal z; mu: means; teachers; D: variances; p: shares.
    """

    groups: tuple[Hashable, ...]
    classes: tuple[Hashable, ...]
    p: np.ndarray  # (G,)
    D: np.ndarray  # (G,)
    mu: np.ndarray  # (G, r)
    teachers: np.ndarray  # (G, C, r)
    offsets: np.ndarray  # (G, C)
    pi: np.ndarray  # (G, C)
    J: np.ndarray  # (G, C, r)
    K: np.ndarray  # (G, C, r, r)

    @property
    def ybar(self) -> np.ndarray:
        """Mean targets: pi - 1/C."""
        return np.asarray(self.pi - 1.0 / len(self.classes))


def coordinates(problem: ClassMixture) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means (G, r), teachers (G, C, r) and offsets (G, C), with r as small as the vectors allow."""
    groups, classes = problem.groups, problem.classes
    means = np.stack([problem.means[g] for g in groups])
    teachers = np.stack([np.stack([problem.teachers[g][c] for c in classes]) for g in groups])
    stacked = np.concatenate([means, teachers.reshape(-1, means.shape[1])])
    _, values, rows = np.linalg.svd(stacked, full_matrices=False)
    basis = rows[values > 1e-12 * values[0]]
    bias = problem.label_bias or {}
    offsets = np.array([[bias[g][c] for c in classes] for g in groups])
    return means @ basis.T, teachers @ basis.T, offsets


def cell(teachers: np.ndarray, offsets: np.ndarray, mu: np.ndarray, D: float, c: int, uniform: np.ndarray) -> Cell:
    """Points of class c of a group with these teachers (C, r)."""
    others = [j for j in range(len(teachers)) if j != c]
    ahead = teachers[c] - teachers[others]
    lower, U, new = triangular(np.sqrt(D) * ahead)
    v, weight = points_inside(lower, new, ahead @ mu + offsets[c] - offsets[others], uniform)
    return Cell(U, v, weight)


@lru_cache(maxsize=64)
def class_moments(problem: ClassMixture, quadrature: Sobol = NODES) -> ClassMoments:
    """The moments of a problem, by the cell points of its classes.

    >>> from tiltmeter.theory.problem.class_mixture import class_mixture
    >>> class_moments(class_mixture(4)).pi.round(4).tolist()[0]
    [0.25, 0.25, 0.25, 0.25]
    """
    if not isinstance(problem, ClassMixture):
        raise TypeError(f"`problem` should be a ClassMixture. Found {type(problem).__name__}.")
    mu, teachers, offsets = coordinates(problem)
    number, count, rank = teachers.shape
    D = np.array([problem.variance[g] for g in problem.groups])
    pi, J, K = np.zeros((number, count)), np.zeros((number, count, rank)), np.zeros((number, count, rank, rank))
    uniform = quadrature.uniform(count - 1)
    for g in range(number):
        for c in range(count):
            found = cell(teachers[g], offsets[g], mu[g], float(D[g]), c, uniform)
            pi[g, c] = found.weight.mean()
            J[g, c] = found.U @ (found.weight @ found.v) / len(uniform)
            inside = (found.v * found.weight[:, None]).T @ found.v / len(uniform)
            K[g, c] = found.U @ (inside - pi[g, c] * np.eye(len(inside))) @ found.U.T + pi[g, c] * np.eye(rank)
        # Exact sums over the classes: of probabilities 1, of z 0, of z z' the identity.
        pi[g] /= pi[g].sum()
        J[g] -= pi[g][:, None] * J[g].sum(0)
        K[g] -= pi[g][:, None, None] * (K[g].sum(0) - np.eye(rank))
    p = np.array([problem.weight[g] for g in problem.groups])
    return ClassMoments(problem.groups, problem.classes, p, D, mu, teachers, offsets, pi, J, K)


@dataclass(frozen=True)
class ClassStudents:
    """n students: W (n, C, r) in the span of means and teachers, Q (n, C, C) of the whole, bias (n, C)."""

    W: np.ndarray
    Q: np.ndarray
    bias: np.ndarray

    def blanked(self, where: np.ndarray) -> ClassStudents:
        """NaN for the students `where`."""
        if not where.any():
            return self
        parts = []
        for part in (self.W, self.Q, self.bias):
            copy = part.copy()
            copy[where] = np.nan
            parts.append(copy)
        return ClassStudents(*parts)

    def scores(self, data: ClassMoments) -> np.ndarray:
        """Mean scores of every group: (n, G, C)."""
        return np.asarray(np.einsum("ncr,gr->ngc", self.W, data.mu) + self.bias[:, None, :])


def square_losses(data: ClassMoments, students: ClassStudents) -> np.ndarray:
    """Half squared error per group (n, G), by its own formula: a sum over classes would inherit their errors."""
    score, count = students.scores(data), len(data.classes)
    trace = np.einsum("ncc->n", students.Q)
    reach = np.sqrt(data.D) * np.einsum("gcr,ncr->ng", data.J, students.W)
    half = 0.5 * ((score**2).sum(2) + data.D * trace[:, None] + 1.0 - 1.0 / count)
    return np.asarray(half - np.einsum("gc,ngc->ng", data.ybar, score) - reach)


def square_class_losses(data: ClassMoments, students: ClassStudents) -> np.ndarray:
    """Half squared error per group and class (n, G, C): the mean over the inputs of that class."""
    count = len(data.classes)
    target = np.eye(count) - 1.0 / count
    miss = students.scores(data)[:, :, None, :] - target  # (n, G, class, output)
    hidden = np.einsum("ncc->n", students.Q) - (students.W**2).sum((1, 2))
    WJ = np.einsum("nor,gcr->ngco", students.W, data.J)
    inner = np.einsum("nor,gcrq,noq->ngc", students.W, data.K, students.W)
    with np.errstate(divide="ignore", invalid="ignore"):
        given = (2.0 * np.sqrt(data.D)[:, None] * (miss * WJ).sum(3) + data.D[:, None] * inner) / data.pi
    return np.asarray(0.5 * ((miss**2).sum(3) + (data.D * hidden[:, None])[:, :, None] + given))
