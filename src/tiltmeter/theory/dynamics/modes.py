"""The exact solution of the linear student as a sum of exponentials, for any number of groups.

With w the student's part in the span of all means and teachers, b its bias and P_g = p_g s_g, gradient descent on
the half squared error obeys (d -> infinity, t = steps/d)

    dw/dt = -lr [ (Dbar + decay) w + sum_g P_g mean_g (w.mean_g + b - m_g) - sum_g P_g sqrt(D_g) g_g teacher_g ]
    db/dt = -lr sum_g P_g (w.mean_g + b - m_g)
    dQ/dt = -q Q + f(w, b),      q = 2 lr (Dbar + decay) - sum_g n_g D_g,      n_g = lr^2 p_g s_g^2 D_g / batch

with Dbar = sum_g P_g D_g and f quadratic in the group scores w.mean_g + b. The equations for w and b are linear with
a symmetric matrix: in the span of the means (and the bias) its eigenvectors relax at their own rates, and everything
orthogonal to the means relaxes at gamma = lr (Dbar + decay). Inserting the exponentials into f leaves Q as a sum of
terms (e^{-st} - e^{-qt}) / (q - s), with t e^{-qt} where s = q.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.theory.population.labelled_curves import OverlapCurves
from tiltmeter.theory.problem.sgd_arrays import Parameters
from tiltmeter.threads import in_blocks


def evaluate_modes(
    par: Parameters, solved: Modes, times: np.ndarray, out: OverlapCurves | None = None, threads: int | None = None
) -> OverlapCurves:
    """Sum the exponentials at all times, for all grid points, in one compiled loop over all cores."""
    from tiltmeter.theory.dynamics.compiled_modes import evaluate

    curves = OverlapCurves.empty(par.size, len(times), len(par.groups)) if out is None else out
    reach = np.sqrt(par.D) * par.g

    def work(start: int, stop: int) -> None:
        evaluate(
            start, stop, times, solved.rates, solved.M, solved.R, solved.bias, solved.q, solved.Q0, solved.pairs,
            solved.sources, par.m, reach, par.D, curves.M, curves.R, curves.Q, curves.bias, curves.loss,
        )  # fmt: skip

    in_blocks(work, par.size, threads)
    return curves


@dataclass(frozen=True)
class Modes:
    """Coefficients over N grid points, J modes and G groups.

    Mode 0 is the constant, the last is gamma; `rates[:, 0]` is 0. `sources` belongs to the products of two modes
    listed in `pairs`, which drive Q.
    """

    rates: np.ndarray  # (N, J)
    M: np.ndarray  # (N, J, G)
    R: np.ndarray  # (N, J, G)
    bias: np.ndarray  # (N, J)
    q: np.ndarray  # (N,)
    Q0: np.ndarray  # (N,)
    pairs: np.ndarray  # (S, 2)
    sources: np.ndarray  # (N, S)


def modes(par: Parameters) -> Modes:
    """Solve the linear system by eigendecomposition, for all grid points at once."""
    count, number = par.m.shape
    lr = par.lr[:, None]
    P, noise = par.p * par.s, par.noise
    F, inverse = _factor(par.K)
    tau = inverse @ par.C  # coordinates of the teachers in the span of the means
    pull = P * np.sqrt(par.D) * par.g
    gamma = par.lr * ((P * par.D).sum(1) + par.decay)

    # The symmetric system of the means' span and, if trained, the bias.
    size = number + int(par.train_bias)
    H, beta, x0 = np.zeros((count, size, size)), np.zeros((count, size)), np.zeros((count, size))
    weighted = F.transpose(0, 2, 1) * (lr * P)[:, None, :]
    H[:, :number, :number] = weighted @ F + gamma[:, None, None] * np.eye(number)
    beta[:, :number] = _apply(weighted, par.m) + lr * _apply(tau, pull)
    x0[:, :number] = _apply(inverse, par.M0)
    if par.train_bias:
        H[:, number, :number] = H[:, :number, number] = weighted.sum(2)
        H[:, number, number] = (lr * P).sum(1)
        beta[:, number] = (lr * P * par.m).sum(1)
        x0[:, number] = par.bias0
    else:
        beta -= weighted.sum(2) * par.bias0[:, None]
    eigenvalues, V = _eigh(H)
    limit = _apply(V, _apply(V.transpose(0, 2, 1), beta) / eigenvalues)
    amplitude = _apply(V.transpose(0, 2, 1), x0 - limit)
    X = np.concatenate([limit[:, None, :], amplitude[:, :, None] * V.transpose(0, 2, 1)], axis=1)

    # The part orthogonal to the means.
    across = par.T - tau.transpose(0, 2, 1) @ tau
    R_limit = lr * _apply(across.transpose(0, 2, 1), pull) / gamma[:, None]
    R_start = par.R0 - _apply(tau.transpose(0, 2, 1), x0[:, :number])

    M = np.zeros((count, size + 2, number))
    R, bias = np.zeros_like(M), np.zeros((count, size + 2))
    M[:, :-1] = X[:, :, :number] @ F.transpose(0, 2, 1)
    R[:, :-1] = X[:, :, :number] @ tau
    R[:, 0] += R_limit
    R[:, -1] = R_start - R_limit
    if par.train_bias:
        bias[:, :-1] = X[:, :, number]
    else:
        bias[:, 0] = par.bias0
    rates = np.concatenate([np.zeros((count, 1)), eigenvalues, gamma[:, None]], axis=1)

    # f as a quadratic form in the modes.
    score = M + bias[:, :, None]
    cross = (M * (lr * P)[:, None, :]) @ score.transpose(0, 2, 1)
    quadratic = (score * noise[:, None, :]) @ score.transpose(0, 2, 1) - cross - cross.transpose(0, 2, 1)
    gain = (2.0 * (lr * P - noise))[:, None, :]
    linear = (gain * (par.m[:, None, :] * M + (np.sqrt(par.D) * par.g)[:, None, :] * R)).sum(2)
    linear -= 2.0 * (noise * par.m).sum(1)[:, None] * bias
    quadratic[:, 0, 0] += linear[:, 0] + noise.sum(1)
    quadratic[:, 0, 1:] += 0.5 * linear[:, 1:]  # the other half is below the diagonal
    quadratic[:, 1:, 0] += 0.5 * linear[:, 1:]
    pairs = np.array([(i, j) for i in range(size + 1) for j in range(i, size + 1)] + [(0, size + 1)])
    twice = np.where(pairs[:, 0] == pairs[:, 1], 1.0, 2.0)
    return Modes(
        rates=rates,
        M=M,
        R=R,
        bias=bias,
        q=2.0 * gamma - (noise * par.D).sum(1),
        Q0=par.Q0,
        pairs=pairs,
        sources=np.ascontiguousarray(quadratic[:, pairs[:, 0], pairs[:, 1]] * twice),
    )


def _factor(K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return F with K = F F', and its pseudo-inverse; directions below rounding errors are exactly zero in both."""
    if not K.any():
        return np.zeros_like(K), np.zeros_like(K)
    values, vectors = _eigh(K)
    root = np.sqrt(np.where(values > 1e-13 * values[:, -1:], values, 0.0))
    with np.errstate(divide="ignore"):
        inverse = np.where(root > 0, 1.0 / root, 0.0)
    return vectors * root[:, None, :], inverse[:, :, None] * vectors.transpose(0, 2, 1)


def _eigh(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Batched symmetric eigendecomposition; a matrix common to all grid points is decomposed once."""
    if len(matrices) > 1 and (matrices == matrices[:1]).all():
        values, vectors = np.linalg.eigh(matrices[:1])
        return np.repeat(values, len(matrices), axis=0), np.repeat(vectors, len(matrices), axis=0)
    return np.linalg.eigh(matrices)


def _apply(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])
