"""Minimisers of a convex loss plus ridge on a training set: Newton's method, and scikit-learn for the hinge."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from tiltmeter.losses import Hinge, Loss
from tiltmeter.problem.objective_arrays import ProblemArrays
from tiltmeter.simulation.training_set import TrainingSet


def minimise(loss: Loss, point: ProblemArrays, data: TrainingSet) -> tuple[np.ndarray, np.ndarray]:
    """Return weights W (K, d) and biases (K,) of the students of a problem."""
    if isinstance(loss, Hinge):
        return _hinge(point, data)
    if loss.kinks:
        raise ValueError(
            f"There is no finite-size solver for {type(loss).__name__}, whose slope or curvature jumps: "
            "only for smooth losses and Hinge()."
        )
    return _newton(loss, point, data)


def _newton(loss: Loss, point: ProblemArrays, data: TrainingSet) -> tuple[np.ndarray, np.ndarray]:
    """Take Newton steps on all students at once, halved until the objective falls."""
    count, width = point.students, data.inputs.shape[1] + 1
    design = np.column_stack([data.inputs, np.full(len(data.y), 1.0 if point.bias else 0.0)])
    own = point.student[data.group]
    parts = [np.flatnonzero(own == k) for k in range(count)]
    penalty = np.ones(width)
    penalty[-1] = 0.0 if point.bias else 1.0
    pull = point.precision.copy() if point.bias else point.precision + 0.0
    theta = np.zeros((count, width))

    def scores(at: np.ndarray) -> np.ndarray:
        return np.asarray((design * at[own]).sum(1)) if count > 1 else design @ at[0]

    def objective(at: np.ndarray, u: np.ndarray) -> float:
        return float(data.weight @ loss.value(u, data.y) + 0.5 * ((pull @ at) * at * penalty).sum())

    u = scores(theta)
    value = objective(theta, u)
    for _ in range(200):
        force = data.weight * loss.gradient(u, data.y)
        bend = data.weight * loss.curvature(u, data.y)
        gradient = (pull @ theta) * penalty
        hessian = np.zeros((count, width, count, width))
        diagonal = np.arange(width)
        for k, rows in enumerate(parts):
            block = design[rows]
            gradient[k] += block.T @ force[rows]
            hessian[k, :, k, :] = (block * bend[rows, None]).T @ block
            for other in range(count):
                hessian[k, diagonal, other, diagonal] += pull[k, other] * penalty
        size = float(np.abs(gradient).max())
        if size < 1e-10 * (1.0 + float(np.abs(data.weight).sum())):
            break
        flat = hessian.reshape(count * width, count * width)
        flat[np.diag_indices_from(flat)] += 1e-12
        step = cho_solve(cho_factor(flat), gradient.ravel()).reshape(count, width)
        scale = 1.0
        while scale > 1e-8:
            new = theta - scale * step
            moved = scores(new)
            lower = objective(new, moved)
            if lower <= value - 1e-4 * scale * float((gradient * step).sum()) or scale < 1e-7:
                break
            scale *= 0.5
        if abs(lower - value) <= 1e-14 * (1.0 + abs(value)):
            theta, u = new, moved
            break
        theta, u, value = new, moved, lower
    else:
        raise ValueError(f"Newton's method did not find the minimiser: the gradient is still {size:.2g}.")
    bias = theta[:, -1] if point.bias else np.zeros(count)
    return theta[:, :-1], bias


def _hinge(point: ProblemArrays, data: TrainingSet) -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's support vector machine with C = 1 / ridge; its bias is not penalised."""
    if point.students > 1:
        raise ValueError(
            "There is no finite-size solver for coupled students with Hinge(). Take Logistic() or Square()."
        )
    ridge = float(point.precision[0, 0])
    if ridge == 0:
        raise ValueError("The finite-size solver for Hinge() needs a positive ridge. Found ridge = 0.")
    kept = data.weight > 0
    inputs, y, weight = data.inputs[kept], data.y[kept], data.weight[kept]
    if point.bias:
        from sklearn.svm import SVC

        machine = SVC(C=1.0 / ridge, kernel="linear", tol=1e-7, cache_size=500)
    else:
        from sklearn.svm import LinearSVC

        machine = LinearSVC(
            C=1.0 / ridge, loss="hinge", fit_intercept=False, tol=1e-9, max_iter=1_000_000, random_state=0
        )
    machine.fit(inputs, y, sample_weight=weight)
    bias = machine.intercept_ if point.bias else np.zeros(1)
    return np.atleast_2d(machine.coef_), np.asarray(bias, dtype=float)
