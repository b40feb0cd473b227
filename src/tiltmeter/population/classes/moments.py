"""ClassMoments: how often each class occurs in each group, and the first two moments of its inputs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tiltmeter.population.classes.orthant import points_inside, triangular
from tiltmeter.population.quadrature import Sobol
from tiltmeter.problem.class_mixture import ClassMixture

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

    >>> from tiltmeter.problem.class_mixture_of_two import class_mixture
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
