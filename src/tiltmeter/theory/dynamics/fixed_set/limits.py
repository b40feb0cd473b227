"""The largest stable learning rates on a fixed training set: of descent, and of SGD with either kind of batches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import brentq

from tiltmeter.theory.dynamics.fixed_set.contour import Resolvents, flow_contour, resolvents_at
from tiltmeter.theory.dynamics.fixed_set.spectrum import spectrum
from tiltmeter.theory.dynamics.fixed_set.stochastic import LEAST_CELLS, SHUFFLED_RESOLUTION, two_times
from tiltmeter.theory.problem.fixed import Fixed, FixedParameters
from tiltmeter.theory.problem.full_batch import Descent, Flow
from tiltmeter.theory.problem.sgd import SGD

#: Epochs over which the growth of a disturbance is measured, and the most cells of the coarser run.
EPOCHS, CELLS = 8, 192
#: Share of the largest eigenvalue up to which the slowest directions are left out of the limit with replacement. They
#: change it by 2e-5 at one example per dimension, like NEAR^1.5; nodes grow like NEAR^-0.5, memory like 1 / NEAR.
NEAR = 1e-3


def fixed_limit(fixed: FixedParameters, training: SGD | Flow | Descent, data: Fixed) -> np.ndarray:
    """The limit at every grid point; gradient flow has none."""
    if isinstance(training, Flow):
        return np.full(fixed.size, np.inf)
    if isinstance(training, Descent):
        return np.asarray(2.0 * (1.0 + training.momentum) * fixed.alpha / spectrum(fixed).top)
    drawn = np.array([replacement_limit(fixed, n) for n in range(fixed.size)])
    if data.replace:
        return drawn
    return np.array([shuffled_limit(fixed, n, guess) for n, guess in enumerate(drawn)])


def replacement_limit(fixed: FixedParameters, n: int) -> float:
    """batch / lr is the spectral radius of the kernel's integral over lr t, which is linear in lr."""
    found = spectrum(fixed)
    # A contour right of zero makes all integrals over time finite.
    close = replace(found, low=np.maximum(found.low, NEAR * found.top))
    at = resolvents_at(_without_start(fixed), flow_contour(_without_start(fixed), close, np.inf), n)
    total = _integrated_kernel(fixed, at, n)
    return float(fixed.par.batch[n] / np.abs(np.linalg.eigvals(total)).max())


def _integrated_kernel(fixed: FixedParameters, at: Resolvents, n: int) -> np.ndarray:
    """The integral of K_gh over lr t, per lr: e1 e2 becomes alpha / (z1 + z2)."""
    par, alpha = fixed.par, fixed.alpha[n]
    p, s, D = par.p[n], par.s[n], par.D[n]
    z = np.concatenate([at.z, at.z.conj()])
    weight = 0.5 * np.concatenate([at.weight, at.weight.conj()])
    q, u = np.concatenate([at.q, at.q.conj()]), np.concatenate([at.u, at.u.conj()])
    apart = z[:, None] - z[None, :]
    np.fill_diagonal(apart, 1.0)
    divided = (q[:, None] - q[None, :]) / apart
    np.fill_diagonal(divided, np.concatenate([at.dq, at.dq.conj()]))
    lasting = alpha / (z[:, None] + z[None, :])
    number = len(p)
    total = np.empty((number, number))
    for g in range(number):
        for h in range(number):
            a = weight * u[:, g] * u[:, h]
            total[g, h] = (a @ (divided * lasting) @ a).real * D[g] * D[h] * s[h] ** 2 * p[h]
        own = weight * D[g] * q * u[:, g]
        total[g, g] += s[g] ** 2 / alpha * (own @ lasting @ own).real
    return total


def shuffled_limit(fixed: FixedParameters, n: int, guess: float) -> float:
    """Return where a disturbance of the student neither grows nor decays from epoch to epoch, to about 0.1 %."""
    low, high = 0.5 * guess, 1.5 * guess
    while growth(fixed, n, high) < 0.0:
        low, high = high, 1.5 * high
        if high > 1e3 * guess:
            return float("inf")
    return float(brentq(lambda lr: growth(fixed, n, lr), low, high, rtol=2e-4))


def growth(fixed: FixedParameters, n: int, lr: float) -> float:
    """The logarithm of the factor by which squared residuals without labels grow in an epoch."""
    at = replace(_without_start(fixed), par=replace(_without_start(fixed).par, lr=np.full(fixed.size, lr)))
    cells = int(np.clip(np.ceil(lr * spectrum(at).top[n] / SHUFFLED_RESOLUTION), LEAST_CELLS, CELLS // EPOCHS))
    epochs = EPOCHS

    def factor(finer: int) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            residual = two_times(at, n, finer * cells, epochs, labels=False)[3]
        size = (residual * fixed.par.p[n] * fixed.par.s[n] ** 2 * fixed.par.D[n]).sum(1)
        last, before = size[-1], size[-1 - finer * cells]
        return float(np.log(last / before)) if np.isfinite(last) else np.inf

    coarse, fine = factor(1), factor(2)
    return 2.0 * fine - coarse if np.isfinite(coarse) and np.isfinite(fine) else np.inf


def _without_start(fixed: FixedParameters) -> FixedParameters:
    par = fixed.par
    zero = np.zeros_like(par.M0)
    return replace(fixed, par=replace(par, M0=zero, R0=zero, Q0=0.0 * par.Q0, bias0=0.0 * par.bias0))
