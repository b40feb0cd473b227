"""Gaussian averages for student networks, over one group: exact for linear and erf units, else by quadrature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erf

from tiltmeter.population.network_curves import square_root
from tiltmeter.population.quadrature import Sobol
from tiltmeter.problem.activation import Activation


@dataclass(frozen=True)
class Group:
    """Mean and teacher in coordinates of the geometry, variance D, and a: the label is sign(nu + a)."""

    mean: np.ndarray
    teacher: np.ndarray
    D: float
    a: float


@dataclass(frozen=True)
class Averages:
    """With G_k = a_k e g'(field_k): E[G_k x], E[G_k field_l], E[G_k G_l], E[e g(field_k)] and E[e]."""

    along: np.ndarray
    inner: np.ndarray
    noise: np.ndarray
    outputs: np.ndarray
    miss: float


def linear_averages(group: Group, w: np.ndarray, Q: np.ndarray, second: np.ndarray, bias: float) -> Averages:
    """Return the averages for linear units: e is linear in the input, so two moments of the label are enough."""
    D, a = group.D, group.a
    m, g = float(erf(a / np.sqrt(2.0))), float(np.sqrt(2.0 / np.pi) * np.exp(-0.5 * a**2))
    fields = w @ group.mean
    reach = np.sqrt(D) * g * (w @ group.teacher)
    pooled = second @ w
    score = float(second @ fields) + bias
    miss = score - m
    on_input = miss * group.mean + D * pooled - np.sqrt(D) * g * group.teacher
    on_fields = miss * fields + D * (Q @ second) - reach
    square = score**2 + D * float(second @ Q @ second) + 1.0 - 2.0 * (m * score + float(second @ reach))
    return Averages(
        along=np.outer(second, on_input),
        inner=np.outer(second, on_fields),
        noise=np.outer(second, second) * square,
        outputs=on_fields,
        miss=miss,
    )


def erf_averages(group: Group, w: np.ndarray, Q: np.ndarray, second: np.ndarray, bias: float) -> Averages:
    """Erf units: closed up to bivariate normal probabilities, see `observables.compiled_erf`."""
    from tiltmeter.theory.compiled_erf_averages import fill_averages

    units, rank = w.shape
    along, inner, noise = np.empty((units, rank)), np.empty((units, units)), np.empty((units, units))
    outputs = np.empty(units)
    w, Q, second = (np.ascontiguousarray(x) for x in (w, Q, second))
    miss = fill_averages(group.mean, group.teacher, group.D, group.a, w, Q, second, bias, along, inner, noise, outputs)
    return Averages(along, inner, noise, outputs, float(miss))


def node_averages(
    group: Group,
    w: np.ndarray,
    Q: np.ndarray,
    second: np.ndarray,
    bias: float,
    activation: Activation,
    quadrature: Sobol,
) -> Averages:
    """Return the averages for any units, by fixed quadrature nodes for the input's coordinates and the other fields.

    The first coordinate of the nodes is along the teacher, so that the jump of the label is perpendicular to an axis,
    where such nodes are most accurate.
    """
    units, rank = w.shape
    nodes = quadrature.nodes(rank + units)
    count, sd = len(nodes), np.sqrt(group.D)
    x = group.mean + sd * nodes[:, :rank] @ _frame(group.teacher)
    fields = x @ w.T + sd * nodes[:, rank:] @ square_root(Q - w @ w.T)
    y = np.where(nodes[:, 0] + group.a > 0.0, 1.0, -1.0)
    outputs = activation(fields)
    e = outputs @ second + bias - y
    G = e[:, None] * second * activation.slope(fields)
    return Averages(
        along=G.T @ x / count,
        inner=G.T @ fields / count,
        noise=G.T @ G / count,
        outputs=outputs.T @ e / count,
        miss=float(e.mean()),
    )


def _frame(first: np.ndarray) -> np.ndarray:
    """Return an orthonormal frame whose first row is this unit vector, by a reflection."""
    axis = np.zeros_like(first)
    axis[0] = 1.0
    normal = first - axis
    square = float(normal @ normal)
    return np.eye(len(first)) if square == 0.0 else np.eye(len(first)) - 2.0 * np.outer(normal, normal) / square
