"""The published closed form of the two-group model: a second route, independent of `modes`.

Sarao Mannelli, *The dynamics of bias in SGD training* (2025), and Jain et al., *Bias in Motion* (NeurIPS 2024): with
kappa = lr (v + D), gamma = lr D, q = lr (2 D - lr D2), where D = sum p D_c and D2 = sum p D_c^2,

    M(t)   = M0 e^{-kappa t} + Minf (1 - e^{-kappa t})
    R_k(t) = R0_k e^{-gamma t} + Rinf_k (1 - e^{-gamma t}) + k1_k (e^{-gamma t} - e^{-kappa t})
    Q(t)   = Q0 e^{-qt} + Qinf (1 - e^{-qt}) + k2 (e^{-qt} - e^{-gamma t}) + k3 (e^{-qt} - e^{-kappa t})
             + k4 (e^{-qt} - e^{-2 kappa t})

and k (e^{-qt} - e^{-st}) becomes F t e^{-qt} where a rate s meets q (at lr = D / D2, half the stability limit, for
s = gamma).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.special import erf

from tiltmeter.names import described
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.starts import Overlaps, Random

Pair = np.ndarray  # one number for "+", one for "-"


@dataclass(frozen=True)
class TwoGroupConstants:
    """The constants of the closed form; `F2`, `F3`, `F4` are k2, k3, k4 times (rate - q), finite at resonance."""

    Minf: float
    Rinf: Pair
    Qinf: float
    k1: Pair
    F2: float
    F3: float
    F4: float
    kappa: float
    gamma: float
    q: float
    M0: float
    R0: Pair
    Q0: float

    @property
    def k2(self) -> float:
        return self.F2 / (self.gamma - self.q)

    @property
    def k3(self) -> float:
        return self.F3 / (self.kappa - self.q)

    @property
    def k4(self) -> float:
        return self.F4 / (2.0 * self.kappa - self.q)

    @property
    def tau(self) -> dict[str, float]:
        return {"M": 1.0 / self.kappa, "R": 1.0 / self.gamma, "Q": 1.0 / self.q}


def two_group_constants(problem: Mixture, sgd: SGD) -> TwoGroupConstants:
    """The constants for plain SGD on one `teacher_mixture` problem.

    >>> from tiltmeter.theory import cases
    >>> problem, _, _ = cases.three_phases()
    >>> round(two_group_constants(problem, SGD(lr=0.1)).Minf, 5)
    0.28863
    """
    gram, p, D, b = _plain_numbers(problem, sgd)
    eta, sign = float(sgd.lr), np.array([1.0, -1.0])  # type: ignore[arg-type]
    v, T = gram[0, 0], gram[2:, 2:]
    A = gram[0, 2:]
    a = (sign * A + b) / np.sqrt(D)
    m, g = erf(a / np.sqrt(2.0)), np.sqrt(2.0 / np.pi) * np.exp(-(a**2) / 2.0)
    Dmix, D2mix = float(p @ D), float(p @ D**2)
    c1 = eta * np.sum(p * (sign * v * m + np.sqrt(D) * A * g))
    c3 = eta * (A * np.sum(p * sign * m) + (p * np.sqrt(D) * g) @ T)
    c4 = -eta * A
    c6 = eta**2 * Dmix
    c7 = 2.0 * eta * np.sum(p * sign * m * (1.0 - eta * D))
    c8 = -2.0 * eta + eta**2 * Dmix
    c9 = 2.0 * eta * p * np.sqrt(D) * g * (1.0 - eta * D)
    kappa, gamma, q = eta * (v + Dmix), eta * Dmix, eta * (2.0 * Dmix - eta * D2mix)
    M0, R0, Q0 = _start(sgd, problem)
    Minf = c1 / kappa
    Rinf = (c3 + c4 * Minf) / gamma
    k1 = A * (Minf - M0) / v if v > 0 else np.zeros(2)
    return TwoGroupConstants(
        Minf=float(Minf),
        Rinf=Rinf,
        Qinf=float((c6 + c7 * Minf + c8 * Minf**2 + c9 @ Rinf) / q),
        k1=k1,
        F2=float(c9 @ (R0 - Rinf + k1)),
        F3=float((c7 + 2.0 * c8 * Minf) * (M0 - Minf) - c9 @ k1),
        F4=float(c8 * (M0 - Minf) ** 2),
        kappa=float(kappa),
        gamma=float(gamma),
        q=float(q),
        M0=M0,
        R0=R0,
        Q0=Q0,
    )


def closed_form(problem: Mixture, sgd: SGD, times: np.ndarray) -> Trajectory:
    """Return M, R, Q and loss of a `teacher_mixture` problem by the published formulas (plain SGD only).

    >>> from tiltmeter.theory import cases
    >>> problem, sgd, _ = cases.centred_crossing()
    >>> closed_form(problem, sgd, [1.0])["loss"].values.round(4)
    array([[0.4724, 0.4673]])

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
        times: Times of the evaluations, in units of t = steps / d.
    """
    k, t = two_group_constants(problem, sgd), np.asarray(times, dtype=float)
    _, _, D, b = _plain_numbers(problem, sgd)
    slow, fast, own = np.exp(-k.gamma * t), np.exp(-k.kappa * t), np.exp(-k.q * t)
    M = k.M0 * fast + k.Minf * (1.0 - fast)
    R = k.R0 * slow[:, None] + k.Rinf * (1.0 - slow)[:, None] + k.k1 * (slow - fast)[:, None]
    Q = k.Q0 * own + k.Qinf * (1.0 - own)
    for F, rate in ((k.F2, k.gamma), (k.F3, k.kappa), (k.F4, 2.0 * k.kappa)):
        Q = Q + F * _difference(k.q, rate, t)
    sign = np.array([1.0, -1.0])
    a = (sign * problem.gram.values[0, 2:] + b) / np.sqrt(D)
    m, g = erf(a / np.sqrt(2.0)), np.sqrt(2.0 / np.pi) * np.exp(-(a**2) / 2.0)
    M_c = M[:, None] * sign
    loss = 0.5 * (1.0 + M_c**2 + D * Q[:, None] - 2.0 * (M_c * m + np.sqrt(D) * R * g))
    coords = {"time": t, "group": list(problem.groups)}
    curves = {
        "loss": xr.DataArray(loss, dims=("time", "group"), coords=coords),
        "M": xr.DataArray(M_c, dims=("time", "group"), coords=coords),
        "R": xr.DataArray(R, dims=("time", "group"), coords=coords),
        "Q": xr.DataArray(Q, dims="time", coords={"time": t}),
    }
    origin = Origin("closed form", problem.to_json(), {"sgd": sgd.to_json()})
    return Trajectory({name: described(name, curve) for name, curve in curves.items()}, "t", origin)


def _difference(q: float, rate: float, t: np.ndarray) -> np.ndarray:
    """(e^{-qt} - e^{-rate t}) / (rate - q), without cancellation, and t e^{-qt} where the two meet."""
    gap = rate - q
    x = -gap * t
    grown = np.where(x == 0.0, 1.0, np.expm1(x) / np.where(x == 0.0, 1.0, x))
    with np.errstate(over="ignore", invalid="ignore"):
        direct = np.exp(-q * t) * t * grown
    plain = (np.exp(-q * t) - np.exp(-rate * t)) / gap if gap != 0.0 else direct
    return np.where(np.abs(x) < 1.0, direct, plain)


def _plain_numbers(problem: Mixture, sgd: SGD) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    if not isinstance(sgd, SGD):
        raise TypeError(f"`sgd` should be an SGD(lr=...). Found {type(sgd).__name__}.")
    if sgd.interventions:
        names = ", ".join(type(law).__name__ for law in sgd.interventions)
        raise ValueError(f"`closed_form` is for plain SGD. Found {names}: use `predict`.")
    gram = problem.gram.values
    if problem.grid().sizes or len(problem.groups) != 2 or not np.allclose(gram[0], -gram[1]):
        raise ValueError("The closed form is for one two-group problem with opposite means, as from `teacher_mixture`.")
    if sgd != SGD(lr=sgd.lr, start=sgd.start) or sgd.scheduled or isinstance(sgd.lr, xr.DataArray):
        raise ValueError("The closed form is for plain SGD: constant lr, batch 1, no weights, decay, momentum or bias.")
    return gram, problem.weight.values, problem.variance.values, problem.label_bias.values


def _start(sgd: SGD, problem: Mixture) -> tuple[float, Pair, float]:
    match sgd.start:
        case Random(scale):
            return 0.0, np.zeros(2), float(scale) ** 2
        case Overlaps(M, R, Q, _) if not isinstance(Q, tuple):
            return (
                float(np.asarray(M.get("+", 0.0))),
                np.array([R.get(group, 0.0) for group in problem.groups]),
                float(Q),
            )
    return 0.0, np.zeros(2), 0.0
