"""The contour: an ellipse around the spectrum, so close that the filters stay bounded on it.

    z = centre + radius cosh(beta + i theta),  theta_j = (j + 1/2) pi / N,   <F> = sum_j Re(weight_j F(z_j))

with foci at the ends of the spectrum. The half-shifted nodes never touch the real axis. The number of nodes grows like
the square root of the last time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.theory.dynamics.fixed_set.spectrum import Spectrum
from tiltmeter.theory.problem.fixed import FixedParameters

#: Nodes times beta: enough for rounding errors only; half as many leave errors of 1e-5 at late times.
NODES = 42.0
#: The largest exponent by which a filter may grow on the contour.
GROWTH = 2.0


@dataclass(frozen=True)
class Contour:
    """Centre, radius, beta and number of nodes per grid point."""

    centre: np.ndarray
    radius: np.ndarray
    beta: np.ndarray
    nodes: np.ndarray


def flow_contour(fixed: FixedParameters, found: Spectrum, last: float) -> Contour:
    """Return the contour for filters that fall like e^{-rate z t} up to the time `last`."""
    left, radius = _ends(fixed, found)
    rate = fixed.par.lr / fixed.alpha
    with np.errstate(divide="ignore"):
        gap = np.maximum(GROWTH / (rate * last), 0.5 * left)
    return _ellipse(left, found.top, radius, _clear(fixed, found, np.minimum(gap, 0.6 * radius)))


def descent_contour(fixed: FixedParameters, found: Spectrum, steps: int, momentum: float) -> Contour:
    """Return the contour for polynomials of degree `steps` in z, which grow on all sides of the spectrum."""
    left, radius = _ends(fixed, found)
    rate = fixed.par.lr / fixed.alpha
    gap = np.maximum(GROWTH * (1.0 - momentum) / (rate * max(steps, 1)), 0.5 * left)
    turns = np.exp(1j * np.linspace(0.0, np.pi, 65))
    gap = _clear(fixed, found, np.minimum(gap, 0.6 * radius))
    for _ in range(60):
        beta = np.arccosh(1.0 + gap / radius)
        around = (left + radius)[:, None] + 0.5 * radius[:, None] * (
            np.exp(beta)[:, None] * turns + np.exp(-beta)[:, None] / turns
        )
        middle = 0.5 * (1.0 + momentum - rate[:, None] * around)
        root = np.sqrt(middle * middle - momentum)
        growth = np.log(np.maximum(np.abs(middle + root), np.abs(middle - root)).max(1)) * steps
        wide = growth > GROWTH
        if not wide.any():
            break
        gap = _clear(fixed, found, np.where(wide, 0.6 * gap, gap))
    return _ellipse(left, found.top, radius, gap)


def _ends(fixed: FixedParameters, found: Spectrum) -> tuple[np.ndarray, np.ndarray]:
    """The left focus and half the distance of the foci.

    A trained bias may relax more slowly than the bulk; then the contour must enclose zero as well. Directions without
    data are not enclosed; the part of a start in these directions is added separately (see `compiled_curves`).
    """
    left = np.zeros_like(found.low) if fixed.par.train_bias else found.low
    return left, 0.5 * (found.top - left)


def _clear(fixed: FixedParameters, found: Spectrum, gap: np.ndarray) -> np.ndarray:
    """Return a distance that excludes the directions without data, where the resolvent of a start has a pole."""
    if not fixed.started or fixed.par.train_bias:
        return gap
    away = found.low - fixed.alpha * fixed.par.decay
    near = found.atom & (gap > 0.5 * away) & (gap < 1.5 * away)
    return np.where(near, 0.5 * away, gap)


def _ellipse(left: np.ndarray, top: np.ndarray, radius: np.ndarray, gap: np.ndarray) -> Contour:
    beta = np.arccosh(1.0 + np.minimum(gap, 0.6 * radius) / radius)
    return Contour(0.5 * (left + top), radius, beta, np.ceil(NODES / beta).astype(np.int64))


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
    from tiltmeter.theory.dynamics.fixed_set.compiled_curves import nodes_of, resolvents, traces

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
