"""Flow: the path of a linear model under gradient flow, from zero, for binary labels, classes and numbers.

A row of features F_i (one of them constant) counts with mass m_i, and masses sum to one. Labels are *soft*: of binary
ones the probability of the positive label, of classes one probability each, of a regression the number itself. The
weights follow dw/dt = -grad L(w), where L is the mean loss under these masses.

For the squared loss the path is known in closed form, from the eigenvectors of the pooled second moment. For logistic
and softmax losses the flow takes implicit steps to growing times: the weights at T minimise L + |w - w0|^2 / (2 h), the
step h = T - t being long where the flow is slow. Newton's method finds them, with one matrix for each step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import ssyrk
from scipy.special import expit, logsumexp, softmax

Kind = Literal["binary", "classes", "numbers"]
#: Times to which the flow goes; features have a variance of about one.
TIMES = np.geomspace(0.01, 3000.0, 24)
#: Corrections of Newton's method at one time, at most, and the size of a correction at which it stops.
CORRECTIONS, SMALL = 4, 1e-4
#: Steps of the bounded method for several classes.
BOUNDED = 12
#: The flow ends where the held-out loss has not been below its minimum for so many times.
PATIENCE = 3

#: The held-out loss of weights (features, outputs).
Judge = Callable[[np.ndarray], float]


class Path(NamedTuple):
    """Weights at every time, first those at zero: (times, features, outputs); and the training loss at each."""

    times: np.ndarray
    weights: np.ndarray
    loss: np.ndarray


def flow(
    features: np.ndarray,
    labels: np.ndarray,
    mass: np.ndarray,
    kind: Kind,
    times: np.ndarray = TIMES,
    judge: Judge | None = None,
) -> Path:
    """The path of a linear model of these features; with `judge` it ends soon after the least held-out loss.

    >>> features = np.array([[1.0, 1.0], [1.0, -1.0]])
    >>> path = flow(features, np.array([1.0, 0.0]), np.array([0.5, 0.5]), "binary")
    >>> path.weights.shape, bool(abs(path.weights[-1, 0, 0]) < 1e-9), bool(path.weights[-1, 1, 0] > 5)
    ((25, 2, 1), True, True)
    """
    mass = mass / mass.sum()
    if kind == "numbers":
        return _square(features, labels, mass, times)
    walk = _binary if kind == "binary" else _classes
    return walk(features, labels, mass, times, _Patience(judge))


class _Patience:
    """Says when to end: the held-out loss has not been below its minimum for a few times."""

    def __init__(self, judge: Judge | None) -> None:
        self._judge, self._least, self._since = judge, np.inf, 0

    def over(self, weights: np.ndarray) -> bool:
        if self._judge is None:
            return False
        value = self._judge(weights)
        self._since = 0 if value < self._least else self._since + 1
        self._least = min(self._least, value)
        return self._since >= PATIENCE


def mean_loss(scores: np.ndarray, labels: np.ndarray, mass: np.ndarray, kind: Kind) -> float:
    """The mean loss of scores (points, outputs) under these masses, which sum to one."""
    return float(mass @ point_losses(scores, labels, kind))


def point_losses(scores: np.ndarray, labels: np.ndarray, kind: Kind) -> np.ndarray:
    """The loss of every point, in expectation over its soft label."""
    if kind == "classes":
        return np.asarray(logsumexp(scores, axis=1) - (labels * scores).sum(1))
    one = scores[:, 0]
    if kind == "numbers":
        return np.asarray(0.5 * (one - labels) ** 2)
    return np.asarray(np.logaddexp(0.0, one) - labels * one)


def descent(
    features: np.ndarray,
    labels: np.ndarray,
    mass: np.ndarray,
    lr: float,
    steps: np.ndarray,
    weight_decay: float = 0.0,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """The mean weights (steps, features) of stochastic gradient descent with the half squared error, in closed form.

    Batches that are drawn at random have the mean gradient of the whole table; since that is linear in the weights, the
    mean path is that of descent on the whole table, from `start` (None: zero).

    >>> rows = np.array([[1.0, 0.5], [1.0, -2.0], [1.0, 1.0]])
    >>> mean = descent(rows, np.array([1.0, 0.0, 2.0]), np.full(3, 1 / 3), 0.1, np.array([0, 1]))
    >>> np.allclose(mean[1], 0.1 * rows.T @ [1 / 3, 0.0, 2 / 3])
    True
    """
    values, vectors, pull = _moments(features, labels, mass / mass.sum())
    values = values + weight_decay
    factor = 1.0 - lr * values
    with np.errstate(divide="ignore", invalid="ignore"):
        grown = np.where(
            np.abs(values) > 1e-300, (1.0 - factor ** steps[:, None]) / np.where(values == 0, 1.0, values), np.nan
        )
    grown = np.where(np.abs(lr * values) < 1e-12, lr * steps[:, None], grown)
    moved = grown * pull
    if start is not None:
        moved = moved + factor ** steps[:, None] * (vectors.T @ start)
    return np.asarray(moved @ vectors.T)


def _moments(features: np.ndarray, labels: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues and vectors of the pooled second moment, and the labels' covariance with the features in them."""
    values, vectors = np.linalg.eigh(features.T @ (mass[:, None] * features))
    return np.maximum(values, 0.0), vectors, vectors.T @ (features.T @ (mass * labels))


def _square(features: np.ndarray, labels: np.ndarray, mass: np.ndarray, times: np.ndarray) -> Path:
    values, vectors, pull = _moments(features, labels, mass)
    every = np.concatenate([[0.0], times])
    with np.errstate(divide="ignore", invalid="ignore"):
        grown = np.where(values > 1e-14, -np.expm1(-every[:, None] * values) / values, every[:, None])
    weights = (grown * pull) @ vectors.T
    losses = [mean_loss((features @ w)[:, None], labels, mass, "numbers") for w in weights]
    return Path(every, weights[:, :, None], np.array(losses))


def _binary(features: np.ndarray, labels: np.ndarray, mass: np.ndarray, times: np.ndarray, patience: _Patience) -> Path:
    count = features.shape[1]
    w, t = np.zeros(count), 0.0
    score = np.zeros(len(features))
    single = features.astype(np.float32)  # for the matrices: a correction need not be exact, its gradient is
    found, losses = [w], [np.log(2.0)]
    for time in times:
        h, before, factors = time - t, w, None
        for _ in range(CORRECTIONS):
            chance = expit(score)
            slope = features.T @ (mass * (chance - labels))
            if factors is None:  # one matrix for each time; the later corrections only follow the gradient
                rows = np.sqrt(mass * chance * (1.0 - chance)).astype(np.float32)[:, None] * single
                bend = ssyrk(np.float32(1.0), rows.T).astype(float)
                factors = cho_factor(np.eye(count) + h * bend, check_finite=False)
            change = cho_solve(factors, (w - before) + h * slope, check_finite=False)
            w = w - change
            score = features @ w
            if np.abs(change).max() < SMALL * max(1.0, np.abs(w).max()):
                break
        t = float(time)
        found.append(w)
        losses.append(mean_loss(score[:, None], labels, mass, "binary"))
        if patience.over(w[:, None]):
            break
    return Path(np.concatenate([[0.0], times])[: len(found)], np.stack(found)[:, :, None], np.array(losses))


def _classes(
    features: np.ndarray, labels: np.ndarray, mass: np.ndarray, times: np.ndarray, patience: _Patience
) -> Path:
    """Several classes: the curvature is bounded by half the second moment of every output, which is inverted once."""
    count, outputs = features.shape[1], labels.shape[1]
    bound = 0.5 * features.T @ (mass[:, None] * features)
    w, t = np.zeros((count, outputs)), 0.0
    scores = np.zeros((len(features), outputs))
    found, losses = [w], [mean_loss(scores, labels, mass, "classes")]
    for time in times:
        h, before = time - t, w
        factors = cho_factor(np.eye(count) + h * bound, check_finite=False)
        for _ in range(BOUNDED):
            slope = features.T @ (mass[:, None] * (softmax(scores, axis=1) - labels))
            change = cho_solve(factors, (w - before) + h * slope, check_finite=False)
            w = w - change
            scores = features @ w
            if np.abs(change).max() < SMALL * max(1.0, np.abs(w).max()):
                break
        t = float(time)
        found.append(w)
        losses.append(mean_loss(scores, labels, mass, "classes"))
        if patience.over(w):
            break
    return Path(np.concatenate([[0.0], times])[: len(found)], np.stack(found), np.array(losses))
