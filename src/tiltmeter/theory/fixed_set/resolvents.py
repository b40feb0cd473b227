"""Resolvents of the training set at the nodes of one contour, for one grid point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.problem.fixed_arrays import FixedParameters
from tiltmeter.theory.fixed_set.contour import Contour


@dataclass(frozen=True)
class Resolvents:
    """Arrays over the J nodes, see `compiled_resolvent`; S holds S, S0h, S00 and their derivatives, (J, 6)."""

    z: np.ndarray
    weight: np.ndarray
    q: np.ndarray
    dq: np.ndarray
    u: np.ndarray
    M: np.ndarray
    R: np.ndarray
    b: np.ndarray
    Mx: np.ndarray
    Rx: np.ndarray
    bx: np.ndarray
    S: np.ndarray


def resolvents_at(fixed: FixedParameters, chosen: Contour, n: int) -> Resolvents:
    """The resolvents of grid point n on its contour."""
    from tiltmeter.theory.fixed_set.compiled_resolvent import nodes_of, resolvents, traces

    par, alpha = fixed.par, fixed.alpha[n]
    p, s, tau = par.p[n], par.s[n], fixed.tau[n]
    z, weight = nodes_of(chosen.centre[n], chosen.radius[n], chosen.beta[n], chosen.nodes[n])
    q = traces(z, alpha * par.decay[n], alpha * p, tau)
    found = resolvents(
        z, q, alpha, p, s, tau, par.K[n], par.C[n], par.T[n], fixed.m[n], fixed.reach[n], par.M0[n], par.R0[n],
        par.Q0[n], par.bias0[n], par.train_bias, True,
    )  # fmt: skip
    dq = 1.0 / (1.0 / q**2 - (alpha * p * (tau * found[0]) ** 2).sum(1))
    return Resolvents(z, weight, q, dq, *found)


class Divided:
    """The divided difference (F(z1) - F(z2)) / (z1 - z2) of a function on the contour, as a quadratic form.

    `form(a, b)` is its double contour average with the filters a(z1) and b(z2), rows of shape (T, J) that already hold
    the weights of the nodes. On the diagonal stands dF/dz.
    """

    def __init__(self, z: np.ndarray, values: np.ndarray, slopes: np.ndarray) -> None:
        apart = z[:, None] - z[None, :]
        np.fill_diagonal(apart, 1.0)
        same = (values[:, None] - values[None, :]) / apart
        np.fill_diagonal(same, slopes)
        mirrored = (values[:, None] - values.conj()[None, :]) / (z[:, None] - z.conj()[None, :])
        self._same, self._mirrored = same, mirrored

    def form(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        both = np.einsum("tj,tj->t", a @ self._same, b) + np.einsum("tj,tj->t", a @ self._mirrored, b.conj())
        return np.asarray(0.5 * both.real)
