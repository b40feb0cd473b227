"""Where the spectrum of the training set's Hessian lies: the edges of its bulk, and the outlier of the means.

With V = s_g D_g q and q = (1/d) Tr (H - z)^-1,    1/q = decay - z + alpha sum_g p_g tau_g / (1 + tau_g q),

so z is an explicit function of q. The bulk ends where dz/dq = 0, that is where alpha sum_g p_g x_g^2 = 1 with x_g =
tau_g q / (1 + tau_g q), a monotone condition on the branches below and above the bulk. An outlier is where the matrix
of the means is singular. `decay` = alpha times the weight decay shifts all eigenvalues except that of the bias.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tiltmeter.theory.problem.fixed import FixedParameters

#: Bisection steps, down to rounding errors.
HALVINGS = 80


@dataclass(frozen=True)
class Spectrum:
    """Lowest and highest eigenvalue that affect training, per grid point; `atom`: some directions have no data."""

    low: np.ndarray
    edge: np.ndarray
    top: np.ndarray
    atom: np.ndarray


def spectrum(fixed: FixedParameters) -> Spectrum:
    """Edges and outlier over all grid points.

    >>> from tiltmeter import Fixed, Flow, teacher_mixture
    >>> from tiltmeter.theory.problem.fixed import fixed_parameters
    >>> found = spectrum(fixed_parameters(teacher_mixture(variance=(1.0, 1.0)), Flow(1.0), Fixed(4.0)))
    >>> found.low.item(), found.top.item()  # Marchenko and Pastur: (sqrt(4) -+ 1)^2
    (1.0..., 9.0...)
    """
    par, alpha = fixed.par, fixed.alpha[:, None]
    tau, p = fixed.tau, fixed.par.p
    decay = fixed.alpha * par.decay
    counted = fixed.alpha * np.where(tau > 0, p, 0.0).sum(1)
    most = tau.max(1)
    least = np.where(tau > 0, tau, np.inf).min(1)

    def z_of(q: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(decay - 1.0 / q + (alpha * p * tau / (1.0 + tau * q[:, None])).sum(1))

    def excess(q: np.ndarray) -> np.ndarray:
        x = tau * q[:, None] / (1.0 + tau * q[:, None])
        return np.asarray((alpha * p * x * x).sum(1) - 1.0)

    # Above the bulk: -1/most < q < 0.
    share = _bisect(lambda x: excess(-x / most), np.zeros(fixed.size), np.full(fixed.size, 1.0 - 1e-15))
    q_edge = -share / most
    edge = z_of(q_edge)
    # Below it: q > 0 if there are more examples than dimensions, q < -1/least if fewer. Both by an exponent.
    plenty = counted > 1.0
    with np.errstate(over="ignore"):
        up = _bisect(lambda x: excess(np.exp(x) / least), np.full(fixed.size, -60.0), np.full(fixed.size, 300.0))
        down = _bisect(
            lambda x: -excess(-(1.0 + np.exp(x)) / least), np.full(fixed.size, -34.0), np.full(fixed.size, 300.0)
        )
        low = np.where(plenty, z_of(np.exp(up) / least), z_of(-(1.0 + np.exp(down)) / least))
    low = np.maximum(np.where(counted == 1.0, decay, low), decay)
    top = np.maximum(edge, _outlier(fixed, q_edge, z_of))
    return Spectrum(low, edge, top, counted < 1.0)


def _outlier(fixed: FixedParameters, q_edge: np.ndarray, z_of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the largest z above the bulk where the matrix of means (and bias) is singular; -inf if none."""
    par = fixed.par
    if not par.K.any() and not par.train_bias:
        return np.full(fixed.size, -np.inf)

    def excess(share: np.ndarray) -> np.ndarray:
        q = share * q_edge
        root = np.sqrt(fixed.alpha[:, None] * par.p * par.s / (1.0 + fixed.tau * q[:, None]))
        inner = -q[:, None, None] * par.K
        if par.train_bias:
            inner = inner + (1.0 / z_of(q))[:, None, None]
        return np.asarray(np.linalg.eigvalsh(root[:, :, None] * inner * root[:, None, :])[:, -1] - 1.0)

    beyond = excess(np.full(fixed.size, 1.0 - 1e-12)) > 0.0
    share = _bisect(excess, np.full(fixed.size, 1e-12), np.full(fixed.size, 1.0 - 1e-12))
    return np.where(beyond, z_of(share * q_edge), -np.inf)


def _bisect(rising: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the zero of an increasing function, at all grid points at once."""
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        above = rising(middle) > 0.0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.asarray(0.5 * (low + high))
