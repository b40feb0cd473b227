"""predict_classes: exact curves of several classes, the closed form of centred groups, and their first rates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import softmax

from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.dynamics.ode import Solution, by_pieces, with_resolution
from tiltmeter.theory.population.classes import decisions, moments, softmax_nodes
from tiltmeter.theory.population.classes.curves import chosen_class_curves, class_curves
from tiltmeter.theory.population.classes.moments import (
    ClassMoments,
    ClassStudents,
    class_moments,
    square_class_losses,
    square_losses,
)
from tiltmeter.theory.population.classes.softmax_nodes import SoftmaxNodes, scores_at
from tiltmeter.theory.population.quadrature import Sobol
from tiltmeter.theory.problem.applied_interventions import refuse_interventions
from tiltmeter.theory.problem.class_mixture import ClassMixture
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.sgd_arrays import loss_weights, shares_at
from tiltmeter.theory.problem.starts import Overlaps, Random
from tiltmeter.theory.problem.students import Linear, Softmax, Student
from tiltmeter.theory.problem.times import checked_times


@dataclass(frozen=True)
class ClassSettings:
    """The SGD in numbers: decay, batch, trained bias and start; `at(t)` returns what may change with time."""

    data: ClassMoments
    sgd: SGD
    start: np.ndarray  # W, Q and bias, flat
    decay: float
    batch: float

    def at(self, t: float) -> tuple[float, np.ndarray, np.ndarray]:
        """Learning rate, shares drawn (G) and loss weights (G) at time t."""
        lr = self.sgd.lr
        now = float(lr(t)) if callable(lr) else float(lr)  # type: ignore[arg-type]
        shares = shares_at(self.sgd.proportions, self.data.groups, t)
        drawn = self.data.p if shares is None else np.array(shares, dtype=float)
        return now, drawn, np.array(loss_weights(self.sgd, self.data.groups, t), dtype=float)

    @property
    def sizes(self) -> tuple[int, int]:
        """C and r."""
        return len(self.data.classes), self.data.mu.shape[1]

    def split(self, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """W (..., C, r), Q (..., C, C) and bias (..., C) of flat states."""
        count, rank = self.sizes
        W, Q, bias = np.split(flat, [count * rank, count * (rank + count)], axis=-1)
        return W.reshape(*flat.shape[:-1], count, rank), Q.reshape(*flat.shape[:-1], count, count), bias


def class_settings(data: ClassMoments, sgd: SGD) -> ClassSettings:
    """Return the settings; refuse what the theory of several classes cannot treat, naming what can."""
    if not isinstance(sgd, SGD):
        raise TypeError(f"`sgd` should be an SGD(lr=...). Found {type(sgd).__name__}.")
    for name, value in (("lr", sgd.lr), ("batch", sgd.batch), ("weight_decay", sgd.weight_decay)):
        if isinstance(value, xr.DataArray) and value.ndim:
            raise ValueError(f"With several classes `{name}` should be one number, not a grid. Call once per point.")
    for name, given in (("momentum", sgd.momentum != 0.0), ("clip", sgd.clip is not None)):
        if given:
            raise ValueError(
                f"`predict` has no exact solution with {name}. Train a linear module on `samples` of the problem."
            )
    if sgd.interventions:
        names = ", ".join(type(law).__name__ for law in sgd.interventions)
        raise ValueError(f"With several classes `predict` cannot apply {names}. Use `weights` or `proportions`.")
    if isinstance(sgd.start, Overlaps):
        raise ValueError(
            "`Overlaps` starts one score; with several classes start from Zero() or Random(scale), or pre-train by "
            "a schedule of `proportions`."
        )
    for key in sgd.weights or {}:
        if isinstance(key, tuple) and len(key) == 2 and key[0] in data.groups and key[1] in data.classes:
            raise ValueError(f"`weights` per (group, class), such as {key!r}, are not solved here: use `simulate`.")
    count, rank = len(data.classes), data.mu.shape[1]
    scale = float(sgd.start.scale) if isinstance(sgd.start, Random) else 0.0
    start = np.concatenate([np.zeros(count * rank), (scale**2 * np.eye(count)).ravel(), np.zeros(count)])
    found = ClassSettings(data, sgd, start, float(sgd.weight_decay), float(sgd.batch))  # type: ignore[arg-type]
    found.at(0.0)
    return found


def softmax_velocity(settings: ClassSettings, nodes: SoftmaxNodes, t: float, flat: np.ndarray) -> np.ndarray:
    """The time derivative of the flat state."""
    data, count = settings.data, len(settings.data.classes)
    W, Q, bias = settings.split(flat)
    lr, p, s = settings.at(t)
    dW, dQ, dbias = -lr * settings.decay * W, -2.0 * lr * settings.decay * Q, np.zeros(count)
    for g, D in enumerate(data.D):
        if p[g] == 0.0:
            continue
        field, score = scores_at(nodes, g, W, Q, bias)
        miss = softmax(score, axis=1)
        miss[np.arange(len(miss)), nodes.label[g]] -= 1.0
        weighted = miss * nodes.weight[g][:, None]
        inner = weighted.T @ field
        dW = dW - lr * p[g] * s[g] * (weighted.T @ nodes.x[g])
        dQ = dQ - lr * p[g] * s[g] * (inner + inner.T)
        dQ = dQ + lr**2 / settings.batch * p[g] * s[g] ** 2 * D * (weighted.T @ miss)
        if settings.sgd.train_bias:
            dbias = dbias - lr * p[g] * s[g] * weighted.sum(0)
    return np.concatenate([dW.ravel(), dQ.ravel(), dbias])


def square_velocity(settings: ClassSettings, t: float, flat: np.ndarray) -> np.ndarray:
    """The time derivative of the flat state."""
    data, count = settings.data, len(settings.data.classes)
    W, Q, bias = settings.split(flat)
    lr, p, s = settings.at(t)
    dW, dQ, dbias = -lr * settings.decay * W, -2.0 * lr * settings.decay * Q, np.zeros(count)
    for g, D in enumerate(data.D):
        if p[g] == 0.0:
            continue
        M = W @ data.mu[g]
        score, ybar, pi = M + bias, data.ybar[g], data.pi[g]
        miss, reach = score - ybar, np.sqrt(D) * data.J[g] @ W.T
        YW = np.outer(ybar, M) + reach
        YS = YW + np.outer(ybar, bias)
        Y2 = np.diag(pi) - (pi[:, None] + pi[None, :]) / count + 1.0 / count**2
        X = D * Q + np.outer(score, M) - YW
        squared = np.outer(score, score) + D * Q + Y2 - YS - YS.T
        dW = dW - lr * p[g] * s[g] * (D * W + np.outer(miss, data.mu[g]) - np.sqrt(D) * data.J[g])
        dQ = dQ - lr * p[g] * s[g] * (X + X.T) + lr**2 / settings.batch * p[g] * s[g] ** 2 * D * squared
        if settings.sgd.train_bias:
            dbias = dbias - lr * p[g] * s[g] * miss
    return np.concatenate([dW.ravel(), dQ.ravel(), dbias])


def predict_classes(
    problem: ClassMixture,
    sgd: SGD,
    times: np.ndarray,
    curves: Iterable[str] | None,
    student: Student,
    quadrature: Sobol | None,
) -> Trajectory:
    """Return curves of C linear scores: per group, per group and class, and the confusion of classes."""
    if not isinstance(student, (Linear, Softmax)):
        raise ValueError(
            "The theory of several classes is for Linear() and Softmax() students. Train a Network on `samples`."
        )
    data = class_moments(problem, quadrature or moments.NODES)
    settings = class_settings(data, sgd)
    names = chosen_class_curves(curves, sgd.train_bias)
    nodes = (
        softmax_nodes.softmax_nodes(data, quadrature or softmax_nodes.NODES) if isinstance(student, Softmax) else None
    )
    if nodes is None:
        _check_stability(settings)
    solved = _solve(settings, nodes, times)
    written = None if quadrature is None else quadrature.to_json()
    described = {"sgd": sgd.to_json(), "student": student.to_json(), "quadrature": written}
    origin = Origin("theory", problem.to_json(), described)

    def evaluate(times: Any, curves: Iterable[str] | None = None) -> Trajectory:
        at = checked_times(times)
        wanted = names if curves is None else chosen_class_curves(curves, sgd.train_bias)
        states = (solved if at[-1] <= solved.end else _solve(settings, nodes, at))(at)
        students = ClassStudents(*settings.split(states))
        found = class_curves(data, students, {"time": at}, wanted, nodes, quadrature or decisions.NODES)
        return Trajectory(with_resolution(found, 1e-8 if nodes is None else 1e-5), "t", origin, None, evaluate)

    return evaluate(times)


def _solve(settings: ClassSettings, nodes: softmax_nodes.SoftmaxNodes | None, times: np.ndarray) -> Solution:
    """Return the state as a function of time, up to the last of these times."""
    if nodes is None:
        velocity, rtol, atol = partial(square_velocity, settings), 1e-11, 1e-13
    else:
        velocity, rtol, atol = partial(softmax_velocity, settings, nodes), 1e-6, 1e-8
    _, solved = by_pieces(velocity, settings.start, times, settings.sgd, "DOP853", rtol, atol, keep=True)
    assert solved is not None
    return solved


def _check_stability(settings: ClassSettings) -> None:
    """Check the stability limit: each of several scores has the limit of a single one."""
    if callable(settings.sgd.lr):
        return
    lr, p, s = settings.at(0.0)
    D = settings.data.D
    limit = 2.0 * settings.batch * ((p * s) @ D + settings.decay) / ((p * s**2) @ D**2)
    if lr >= limit:
        raise ValueError(
            f"`lr` should lie below the stability limit {limit:.6g} of this problem. Found lr = {lr:g}: "
            "training diverges."
        )


def centred_class_losses(
    problem: ClassMixture, sgd: SGD, times: np.ndarray, quadrature: Sobol = moments.NODES
) -> tuple[np.ndarray, np.ndarray]:
    """Return losses of groups (T, G) and of classes (T, G, C) as sums of exponentials.

    >>> from tiltmeter.theory.problem.class_mixture import class_mixture
    >>> centred_class_losses(class_mixture(3), SGD(lr=0.2), np.array([0.0]))[0].round(4)
    array([[0.3333, 0.3333]])

    This is a second route for centred groups and a zero start, independent of integration. With W_inf = sum_g p_g
    sqrt(D_g) J_g / D, gamma = lr D and q = lr (2 D - lr D2), D and D2 the mean variance and the mean squared variance,
    W(t) = W_inf (1 - e^{-gamma t}) and tr Q(t) is a sum of 1, e^{-gamma t} and e^{-qt}. Class losses also contain
    e^{-2 gamma t}, through W K W': one rate more than group losses, which allows one crossing more.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
        times: Times of the evaluations, in units of t = steps / d.
        quadrature: Nodes of the averages.
    """
    refuse_interventions(sgd, "centred_class_losses")
    data = class_moments(problem, quadrature)
    if data.mu.any():
        raise ValueError("`centred_class_losses` is for groups without means. Use `predict`.")
    for field in fields(SGD):
        if field.name != "lr" and getattr(sgd, field.name) != field.default:
            raise ValueError(
                f"`centred_class_losses` is for plain SGD from zero, without {field.name}. Found {field.name} = "
                f"{getattr(sgd, field.name)!r}: use `predict`."
            )
    if callable(sgd.lr):
        raise ValueError("`centred_class_losses` needs a constant learning rate. For schedules use `predict`.")
    lr, p, D, count = float(sgd.lr), data.p, data.D, len(data.classes)  # type: ignore[arg-type]
    mix, mix2 = float(p @ D), float(p @ D**2)
    gamma, q = lr * mix, lr * (2.0 * mix - lr * mix2)
    limit = np.einsum("g,gcr->cr", p * np.sqrt(D), data.J) / mix
    pull = 2.0 * lr * float(np.einsum("g,gcr,cr->", p * np.sqrt(D) * (1.0 - lr * D), data.J, limit))
    noise = lr**2 * mix * (1.0 - 1.0 / count)
    slow, fast = np.exp(-gamma * times), np.exp(-q * times)
    # (e^{-gamma t} - e^{-qt}) / (q - gamma), and t e^{-qt} where the rates meet.
    both = times * fast if abs(q - gamma) < 1e-9 * q else (slow - fast) / (q - gamma)
    trace = (noise + pull) / q * (1.0 - fast) - pull * both
    Q = np.zeros((len(times), count, count))
    Q[:, 0, 0] = trace  # losses depend only on the trace of Q
    students = ClassStudents(limit * (1.0 - slow)[:, None, None], Q, np.zeros((len(times), count)))
    return square_losses(data, students), square_class_losses(data, students)
