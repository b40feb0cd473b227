"""Inputs and scores of every class as fixed nodes, for averages of cross-entropy, which have no closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from tiltmeter.theory.population.classes.decisions import semidefinite_root
from tiltmeter.theory.population.classes.moments import ClassMoments, ClassStudents, cell
from tiltmeter.theory.population.quadrature import Sobol

#: Points per cell; twice as many with their mirror images, which cancel all odd errors of the hidden part.
NODES = Sobol(count=2**11)


@dataclass(frozen=True)
class SoftmaxNodes:
    """For every group: inputs x (N, r) in the span, hidden normals (N, C), weights (N) that sum to one, labels (N)."""

    x: tuple[np.ndarray, ...]
    hidden: tuple[np.ndarray, ...]
    weight: tuple[np.ndarray, ...]
    label: tuple[np.ndarray, ...]
    deviation: np.ndarray


def softmax_nodes(data: ClassMoments, quadrature: Sobol = NODES) -> SoftmaxNodes:
    """Cell points of every class, normals in the directions of the span that a cell does not use, and C more."""
    number, count = data.pi.shape
    rank = data.mu.shape[1]
    uniform, normal = quadrature.uniform(count - 1 + rank + count), quadrature.nodes(count - 1 + rank + count)
    whole: tuple[list[np.ndarray], ...] = ([], [], [], [])
    for g in range(number):
        D = float(data.D[g])
        rows: tuple[list[np.ndarray], ...] = ([], [], [], [])
        for c in range(count):
            points = cell(data.teachers[g], data.offsets[g], data.mu[g], D, c, uniform[:, : count - 1])
            rest = normal[:, count - 1 : count - 1 + rank]
            rest = rest - rest @ points.U @ points.U.T
            inside, beyond = points.v @ points.U.T, normal[:, count - 1 + rank :]
            total = points.weight.sum()
            share = points.weight / total * data.pi[g, c] / 2.0 if total > 0 else np.zeros(len(inside))
            for sign in (1.0, -1.0):
                rows[0].append(data.mu[g] + np.sqrt(D) * (inside + sign * rest))
                rows[1].append(sign * beyond)
                rows[2].append(share)
                rows[3].append(np.full(len(inside), c))
        for kept, part in zip(whole, rows, strict=True):
            kept.append(np.concatenate(part))
    x, hidden, weight, label = map(tuple, whole)
    return SoftmaxNodes(x, hidden, weight, label, np.sqrt(data.D))


def scores_at(
    nodes: SoftmaxNodes, g: int, W: np.ndarray, Q: np.ndarray, bias: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """W x (N, C) with its hidden part, and the scores with the bias, at the nodes of one group."""
    root = semidefinite_root((Q - W @ W.T)[None])[0]
    field = nodes.x[g] @ W.T + nodes.deviation[g] * nodes.hidden[g] @ root.T
    return field, field + bias


def softmax_losses(data: ClassMoments, students: ClassStudents, nodes: SoftmaxNodes) -> tuple[np.ndarray, np.ndarray]:
    """Cross-entropy per group (n, G) and per group and class (n, G, C)."""
    number, count = data.pi.shape
    whole, parts = np.full((len(students.W), number), np.nan), np.full((len(students.W), number, count), np.nan)
    for i, (W, Q, bias) in enumerate(zip(students.W, students.Q, students.bias, strict=True)):
        if not (np.isfinite(Q).all() and np.isfinite(W).all()):
            continue
        for g in range(number):
            score = scores_at(nodes, g, W, Q, bias)[1]
            loss = (logsumexp(score, axis=1) - score[np.arange(len(score)), nodes.label[g]]) * nodes.weight[g]
            whole[i, g] = loss.sum()
            mass = np.bincount(nodes.label[g], nodes.weight[g], count)
            with np.errstate(invalid="ignore"):
                parts[i, g] = np.bincount(nodes.label[g], loss, count) / mass
    return whole, parts
