"""Multi-pass SGD whose batches are drawn with replacement: gradient flow plus the noise of the batches.

M and R are those of gradient flow. The mean squared residual r2_g of the training examples and the length Q obey

    r2_g(t) = 2 training loss of flow + int_0^t sum_h K_gh(t-u) r2_h(u) du
    Q(t)    = Q of flow + (lr^2 / batch) int_0^t sum_g p_g s_g^2 J_g(t-u) r2_g(u) du,     e = e^{-rate u z}
    J_g(u)  = < e^2 D_g q u_g >
    K_gh(u) = (lr^2 / batch) s_h^2 p_h / (alpha p_g) << e1 e2 [ D_h alpha p_g D_g u_g1 u_g2 [q] u_h1 u_h2
                                                               + delta_gh D_g^2 q1 u_g1 q2 u_g2 ] >>

with [q] the divided difference of q. Solved on two uniform grids of times, and extrapolated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.problem.fixed_arrays import FixedParameters
from tiltmeter.theory.fixed_set.contour import flow_contour
from tiltmeter.theory.fixed_set.resolvents import Divided, Resolvents, resolvents_at
from tiltmeter.theory.fixed_set.spectrum import spectrum

#: The share by which the fastest mode of the kernel decays per step of the fine grid.
RESOLUTION = 0.1
LEAST_STEPS, MOST_STEPS = 200, 12_000


@dataclass(frozen=True)
class BatchNoise:
    """On a uniform grid of times: the contribution of batches to Q (n), and mean squared residuals (n, G)."""

    times: np.ndarray
    length: np.ndarray
    residual: np.ndarray


def batch_noise(fixed: FixedParameters, flow_training_loss: np.ndarray, times: np.ndarray, n: int) -> BatchNoise:
    """Return the noise at grid point n; `flow_training_loss` (T, G) is that of gradient flow at the uniform `times`."""
    from tiltmeter.theory.fixed_set.compiled_filters import flow_filters
    from tiltmeter.theory.fixed_set.compiled_volterra import convolve, solve_volterra

    par = fixed.par
    at = resolvents_at(fixed, flow_contour(fixed, spectrum(fixed), 2.0 * float(times[-1])), n)
    _, fall = flow_filters(at.z, par.lr[n] / fixed.alpha[n], times)
    strength = par.lr[n] ** 2 / par.batch[n]
    kernel = strength * np.moveaxis(residual_kernel(fixed, at, fall, n), -1, 0)
    along = (strength * par.p[n] * par.s[n] ** 2) * length_kernel(fixed, at, fall, n)
    fine_step = float(times[1] - times[0])

    def solved(every: int) -> tuple[np.ndarray, np.ndarray]:
        step = every * fine_step
        source = np.ascontiguousarray(2.0 * flow_training_loss[::every])
        residual = solve_volterra(source, np.ascontiguousarray(kernel[::every]), step)
        return residual, convolve(np.ascontiguousarray(along[::every]), residual, step)

    fine, coarse = solved(1), solved(2)
    kept = tuple((4.0 * one[::2] - two) / 3.0 for one, two in zip(fine, coarse, strict=True))
    return BatchNoise(times[::2], kept[1], kept[0])


def grid_of_times(fixed: FixedParameters, last: float, n: int) -> np.ndarray:
    """Return a uniform grid, with an even number of steps, that resolves the fastest decay."""
    fastest = 2.0 * fixed.par.lr[n] / fixed.alpha[n] * spectrum(fixed).top[n]
    count = max(LEAST_STEPS, int(np.ceil(last * fastest / RESOLUTION)))
    if count > MOST_STEPS:
        raise ValueError(
            f"The last time should be at most {MOST_STEPS * RESOLUTION / fastest:.4g} for SGD on this fixed set, whose "
            f"equations are solved in small steps. Found {last:g}. Use `simulate`, or Flow for small learning rates."
        )
    return np.linspace(0.0, last, 2 * (count // 2) + 1)


def residual_kernel(fixed: FixedParameters, at: Resolvents, fall: np.ndarray, n: int) -> np.ndarray:
    """K_gh over lr^2 / batch, of shape (G, G, T)."""
    par, alpha = fixed.par, fixed.alpha[n]
    p, s, D = par.p[n], par.s[n], par.D[n]
    rows = fall * at.weight
    divided = Divided(at.z, at.q, at.dq)
    number = len(p)
    out = np.empty((number, number, len(fall)))
    for g in range(number):
        for h in range(g, number):
            filters = rows * (at.u[:, g] * at.u[:, h])
            out[g, h] = out[h, g] = divided.form(filters, filters)
    own = D**2 * (rows @ (at.q[:, None] * at.u)).real ** 2
    for g in range(number):
        for h in range(number):
            out[g, h] *= D[h] * D[g] * s[h] ** 2 * p[h]
        out[g, g] += s[g] ** 2 / alpha * own[:, g]
    return out


def length_kernel(fixed: FixedParameters, at: Resolvents, fall: np.ndarray, n: int) -> np.ndarray:
    """J_g, of shape (T, G)."""
    return np.asarray(((fall * fall * at.weight) @ (at.q[:, None] * at.u)).real * fixed.par.D[n])
