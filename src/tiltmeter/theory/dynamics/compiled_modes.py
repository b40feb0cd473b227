"""The fused loop over problems and times. Imported only when needed, because numba is slow to load."""

from __future__ import annotations

from math import exp

import numpy as np

from tiltmeter.theory.compiled import compiled

# expm1(x) / x as a Taylor polynomial: for |x| <= 1/2 the first term left out is below 1e-15.
_TAYLOR = np.array([1.0 / float(np.prod(np.arange(1.0, k + 2))) for k in range(14)])


@compiled
def _relative_growth(x):  # type: ignore[no-untyped-def]
    total = _TAYLOR[13]
    for k in range(12, -1, -1):
        total = total * x + _TAYLOR[k]
    return total


@compiled
def evaluate(  # type: ignore[no-untyped-def]
    start, stop, times, rates, M_modes, R_modes, bias_modes, q, Q0, pairs, sources, m, reach, D, M, R, Q, bias, loss
):
    """Fill M, R (N, T, G), Q, bias (N, T) and loss (N, T, G) for grid points start..stop from their modes.

    `reach` is sqrt(D_g) g_g. Modes and sources that vanish at a grid point are skipped there.
    """
    number, count = m.shape[1], rates.shape[1]
    decay = np.ones(count)
    alive = np.zeros(count, np.int64)
    active = np.zeros(len(pairs), np.int64)
    for n in range(start, stop):
        living = 0
        for j in range(1, count):
            used = bias_modes[n, j] != 0.0
            for g in range(number):
                used = used or M_modes[n, j, g] != 0.0 or R_modes[n, j, g] != 0.0
            if used:
                alive[living] = j
                living += 1
        acting = 0
        for k in range(len(pairs)):
            if sources[n, k] != 0.0:
                active[acting] = k
                acting += 1
        for i in range(len(times)):
            t = times[i]
            for a in range(living):
                decay[alive[a]] = exp(-rates[n, alive[a]] * t)
            own = exp(-q[n] * t)
            length = Q0[n] * own
            for a in range(acting):
                k = active[a]
                one, two = pairs[k, 0], pairs[k, 1]
                difference = q[n] - rates[n, one] - rates[n, two]
                x = difference * t
                if -0.5 < x < 0.5:
                    length += sources[n, k] * own * t * _relative_growth(x)
                else:
                    length += sources[n, k] * (decay[one] * decay[two] - own) / difference
            offset = bias_modes[n, 0]
            for a in range(living):
                offset += bias_modes[n, alive[a]] * decay[alive[a]]
            Q[n, i] = length
            bias[n, i] = offset
            for g in range(number):
                along, aligned = M_modes[n, 0, g], R_modes[n, 0, g]
                for a in range(living):
                    j = alive[a]
                    along += M_modes[n, j, g] * decay[j]
                    aligned += R_modes[n, j, g] * decay[j]
                M[n, i, g] = along
                R[n, i, g] = aligned
                score = along + offset
                loss[n, i, g] = 0.5 * (
                    score * score + D[n, g] * length + 1.0 - 2.0 * (m[n, g] * score + reach[n, g] * aligned)
                )
