"""Student networks in the limit of many dimensions: the equations of motion of K units, integrated.

With w_k the part of unit k in the span of means and teachers, Q_kl = W_k.W_l / d, a_k the second layer,
e = score - y and G_k = a_k e g'(field_k) (Saad and Solla 1995; Goldt et al. 2019; for mixtures Refinetti et al. 2021),

    dw_k/dt  = -lr [ sum_g P_g E_g[G_k x] + decay w_k ]
    dQ_kl/dt = -lr [ sum_g P_g E_g[G_k field_l + G_l field_k] + 2 decay Q_kl ]
               + (lr^2 / batch) sum_g p_g s_g^2 D_g E_g[G_k G_l]
    da_k/dt  = -lr sum_g P_g E_g[e g(field_k)],    db/dt = -lr sum_g P_g E_g[e]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import erf

from tiltmeter.theory.dynamics.ode import Solution, by_pieces, drawn_at, rate_at, weights_at
from tiltmeter.theory.population.network_curves import NetworkOverlaps, square_root
from tiltmeter.theory.population.quadrature import Sobol
from tiltmeter.theory.problem.applied_interventions import lowered
from tiltmeter.theory.problem.geometry import factor, place
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.sgd_arrays import Parameters, parameters
from tiltmeter.theory.problem.starts import Random
from tiltmeter.theory.problem.students import Activation, Erf, Identity, Network


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
    from tiltmeter.theory.dynamics.compiled_erf_averages import fill_averages

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


@dataclass(frozen=True)
class Student:
    """The state: w (K, rank), Q (K, K), second layer (K), bias; or its velocity."""

    w: np.ndarray
    Q: np.ndarray
    second: np.ndarray
    bias: float

    def flat(self) -> np.ndarray:
        return np.concatenate([self.w.ravel(), self.Q.ravel(), self.second, [self.bias]])

    @staticmethod
    def of(flat: np.ndarray, units: int, rank: int) -> Student:
        w, Q, second = np.split(flat[:-1], [units * rank, units * (rank + units)])
        return Student(w.reshape(units, rank), Q.reshape(units, units), second, float(flat[-1]))


@dataclass(frozen=True)
class NetworkTheory:
    """One problem, its SGD and its network, ready to be integrated."""

    par: Parameters
    sgd: SGD
    student: Network
    groups: tuple[Group, ...]
    start: Student
    quadrature: Sobol | None

    def averages(self, group: Group, now: Student) -> Averages:
        """Return the Gaussian averages of one group, by the most exact method available."""
        activation = self.student.activation
        if isinstance(activation, Identity):
            return linear_averages(group, now.w, now.Q, now.second, now.bias)
        if isinstance(activation, Erf) and self.quadrature is None:
            return erf_averages(group, now.w, now.Q, now.second, now.bias)
        return node_averages(group, now.w, now.Q, now.second, now.bias, activation, self.quadrature or Sobol())

    def velocity(self, t: float, now: Student) -> Student:
        par, lr = drawn_at(self.sgd, self.par, t), float(rate_at(self.sgd, self.par, t)[0])
        s = weights_at(self.sgd, par, t)[0]
        decay = float(par.decay[0])
        dw, dQ = -lr * decay * now.w, -2.0 * lr * decay * now.Q
        dsecond, dbias = np.zeros_like(now.second), 0.0
        for g, group in enumerate(self.groups):
            found = self.averages(group, now)
            P = float(par.p[0, g] * s[g])
            dw = dw - lr * P * found.along
            dQ = dQ - lr * P * (found.inner + found.inner.T)
            dQ = dQ + lr**2 / par.batch[0] * par.p[0, g] * s[g] ** 2 * par.D[0, g] * found.noise
            if self.student.train_second_layer:
                dsecond = dsecond - lr * P * found.outputs
            if self.sgd.train_bias:
                dbias -= lr * P * found.miss
        return Student(dw, dQ, dsecond, dbias)

    @property
    def closed(self) -> bool:
        """Whether all averages have a closed form."""
        return self.quadrature is None and isinstance(self.student.activation, (Erf, Identity))

    @property
    def resolution(self) -> float:
        """Smaller differences between curves may be errors of the integration."""
        return 1e-7 if self.closed else 1e-5

    def solve(self, times: np.ndarray) -> Solution:
        """The state up to the last of these times, restarted where schedules break; ReLU units are not smooth."""
        units, rank = self.start.w.shape
        rtol, atol = (1e-9, 1e-11) if self.closed else (1e-6, 1e-7)

        def rhs(t: float, flat: np.ndarray) -> np.ndarray:
            return self.velocity(t, Student.of(flat, units, rank)).flat()

        method: Literal["DOP853", "RK23"] = "DOP853" if self.closed else "RK23"
        solved = by_pieces(rhs, self.start.flat(), times, self.sgd, method, rtol, atol, keep=True)[1]
        assert solved is not None
        return solved

    def overlaps(self, found: np.ndarray) -> NetworkOverlaps:
        """Overlaps from states, one row for each time."""
        units, rank = self.start.w.shape
        states = [Student.of(flat, units, rank) for flat in found]
        w = np.stack([state.w for state in states])
        means, teachers = (np.stack([getattr(g, name) for g in self.groups]) for name in ("mean", "teacher"))
        return NetworkOverlaps(
            M=np.einsum("tka,ga->tgk", w, means)[None],
            R=np.einsum("tka,ga->tgk", w, teachers)[None],
            Q=np.stack([state.Q for state in states])[None],
            second=np.stack([state.second for state in states])[None],
            bias=np.array([[state.bias for state in states]]),
        )


def network_theory(problem: Mixture, sgd: SGD, student: Network, quadrature: Sobol | None) -> NetworkTheory:
    """Write a problem in the coordinates of its geometry; it must be a single one, not a grid."""
    sgd = lowered(problem, sgd)
    par = parameters(problem, replace(sgd, start=Random(0.0)))
    if par.grid.sizes:
        raise ValueError(
            f"`predict` takes one problem at a time for a Network; this one has a grid over "
            f"{', '.join(map(str, par.grid.sizes))}. Select one point."
        )
    number = len(par.groups)
    coordinates = factor(problem.gram.values)
    means, teachers = coordinates[:number], coordinates[number:]
    groups = tuple(
        Group(means[g].copy(), teachers[g].copy(), float(par.D[0, g]), float(par.a[0, g])) for g in range(number)
    )
    w, rest, bias = place(sgd.start, par.groups, means, teachers, student.units)
    Q = w @ w.T + rest @ rest.T
    if isinstance(sgd.start, Random):
        Q = float(sgd.start.scale) ** 2 * np.eye(student.units)
    return NetworkTheory(par, sgd, student, groups, Student(w, Q, np.array(student.weights), bias), quadrature)
