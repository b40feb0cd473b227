"""The contour: an ellipse around the spectrum, close enough that no filter of time explodes on it.

    z = centre + radius cosh(beta + i theta),  theta_j = (j + 1/2) pi / N,   <F> = sum_j Re(weight_j F(z_j))

with foci at the ends of the spectrum. The half-shifted nodes never touch the real axis. The number of nodes grows like
the square root of the last time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.problem.fixed_arrays import FixedParameters
from tiltmeter.theory.fixed_set.spectrum import Spectrum

#: Nodes times beta; half as many leave errors of 1e-5 at late times, so many leave rounding.
NODES = 42.0
#: By how much, in the exponent, a filter may grow on the contour.
GROWTH = 2.0


@dataclass(frozen=True)
class Contour:
    """Centre, radius, beta and number of nodes per grid point."""

    centre: np.ndarray
    radius: np.ndarray
    beta: np.ndarray
    nodes: np.ndarray


def flow_contour(fixed: FixedParameters, found: Spectrum, last: float, atom: bool = True) -> Contour:
    """For filters that fall like e^{-rate z t} up to the time `last`."""
    left, radius = _ends(fixed, found, atom)
    rate = fixed.par.lr / fixed.alpha
    with np.errstate(divide="ignore"):
        gap = np.maximum(GROWTH / (rate * last), 0.5 * left)
    return _ellipse(left, found.top, radius, gap)


def descent_contour(
    fixed: FixedParameters, found: Spectrum, steps: int, momentum: float, atom: bool = True
) -> Contour:
    """For polynomials of degree `steps` in z: they grow outside the spectrum, on all sides of it."""
    left, radius = _ends(fixed, found, atom)
    rate = fixed.par.lr / fixed.alpha
    gap = np.maximum(GROWTH * (1.0 - momentum) / (rate * max(steps, 1)), 0.5 * left)
    turns = np.exp(1j * np.linspace(0.0, np.pi, 65))
    gap = np.minimum(gap, 0.6 * radius)
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
        gap = np.where(wide, 0.6 * gap, gap)
    return _ellipse(left, found.top, radius, gap)


def _ends(fixed: FixedParameters, found: Spectrum, atom: bool) -> tuple[np.ndarray, np.ndarray]:
    """The left focus and half the distance of the foci.

    Directions without data keep what a start puts there, and a trained bias may relax more slowly than the bulk: then
    the contour must go around zero, too. Training examples have no part in directions without data (not `atom`).
    """
    left = found.low
    if fixed.started and atom:
        left = np.where(found.atom, fixed.alpha * fixed.par.decay, left)
    if fixed.par.train_bias:
        left = np.zeros_like(left)
    return left, 0.5 * (found.top - left)


def _ellipse(left: np.ndarray, top: np.ndarray, radius: np.ndarray, gap: np.ndarray) -> Contour:
    beta = np.arccosh(1.0 + np.minimum(gap, 0.6 * radius) / radius)
    return Contour(0.5 * (left + top), radius, beta, np.ceil(NODES / beta).astype(np.int64))
