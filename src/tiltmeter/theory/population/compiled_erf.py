"""Closed Gaussian integrals of erf units and a sign label, in compiled form.

The units' fields and the label's field are jointly normal with means `mean` and covariance `cov` (K + 1 entries, the
label's field last, never degenerate). With g(u) = erf(u / sqrt 2), g'(u) is itself a Gaussian weight: multiplying by it
tilts the normal distribution (rule iii below). Averages of g are those of signs of fields with one unit of extra noise.

    (i)   E[g(u)]      = erf(mean_u / sqrt(2 (1 + C_uu)))
    (ii)  E[g(u) g(w)] = 4 Phi2(p, q; r) - 2 Phi(p) - 2 Phi(q) + 1,  p = mean_u / sqrt(1 + C_uu),
                         r = C_uw / sqrt((1 + C_uu)(1 + C_ww))       (C_hh in place of 1 + C_hh for the sign of h)
    (iii) E[g'(u) F]   = sqrt(2 / pi) (1 + C_uu)^(-1/2) exp(-mean_u^2 / (2 (1 + C_uu))) E~[F],
                         mean~ = mean - C_.u mean_u / (1 + C_uu),  C~ = C - C_.u C_u. / (1 + C_uu)

Without means they reduce to the arcsines of Saad and Solla (1995).
"""

from __future__ import annotations

from math import erf, exp, pi, sqrt

import numpy as np

from tiltmeter.theory.compiled import compiled
from tiltmeter.theory.population.compiled_normal import Phi, bivariate

STEEP = sqrt(2.0 / pi)


@compiled
def noise_of(cov, i):  # type: ignore[no-untyped-def]
    """1 + C_ii for a unit, C_hh for the label's field, which comes last."""
    return cov[i, i] + (1.0 if i < cov.shape[0] - 1 else 0.0)


@compiled
def mean_output(mean, cov, i):  # type: ignore[no-untyped-def]
    """E[g(u_i)], or the mean label for the last."""
    return erf(mean[i] / sqrt(2.0 * noise_of(cov, i)))


@compiled
def mean_slope(mean, cov, i):  # type: ignore[no-untyped-def]
    """E[g'(u_i)], or the mean derivative of the label with respect to its field for the last."""
    noise = noise_of(cov, i)
    return STEEP / sqrt(noise) * exp(-0.5 * mean[i] * mean[i] / noise)


@compiled
def mean_product(mean, cov, i, j):  # type: ignore[no-untyped-def]
    """E[g(u_i) g(u_j)], with the label for the last."""
    one, two = noise_of(cov, i), noise_of(cov, j)
    p, q = mean[i] / sqrt(one), mean[j] / sqrt(two)
    return 4.0 * bivariate(p, q, cov[i, j] / sqrt(one * two)) - 2.0 * Phi(p) - 2.0 * Phi(q) + 1.0


@compiled
def tilt(mean, cov, i, new_mean, new_cov):  # type: ignore[no-untyped-def]
    """Fill mean and covariance of the distribution tilted by g'(u_i), and return the weight E[g'(u_i)]."""
    noise = 1.0 + cov[i, i]
    for a in range(mean.shape[0]):
        new_mean[a] = mean[a] - cov[a, i] * mean[i] / noise
        for b in range(mean.shape[0]):
            new_cov[a, b] = cov[a, b] - cov[a, i] * cov[i, b] / noise
    return STEEP / sqrt(noise) * exp(-0.5 * mean[i] * mean[i] / noise)


@compiled
def mean_square(mean, cov, second, bias):  # type: ignore[no-untyped-def]
    """E[(score - y)^2] of score = sum_k second_k g(u_k) + bias."""
    units = second.shape[0]
    label = mean_output(mean, cov, units)
    total = bias * bias + 1.0 - 2.0 * bias * label
    for i in range(units):
        total += 2.0 * second[i] * (bias * mean_output(mean, cov, i) - mean_product(mean, cov, i, units))
        total += second[i] * second[i] * mean_product(mean, cov, i, i)
        for j in range(i):
            total += 2.0 * second[i] * second[j] * mean_product(mean, cov, i, j)
    return total


@compiled
def fill_losses(start, stop, M, R, Q, second, bias, D, a, loss):  # type: ignore[no-untyped-def]
    """Half squared errors (N, T, G) of items start..stop from M, R (N, T, G, K), Q, second layer and bias."""
    units = M.shape[3]
    mean, cov = np.empty(units + 1), np.empty((units + 1, units + 1))
    for n in range(start, stop):
        for t in range(M.shape[1]):
            for g in range(M.shape[2]):
                fill_intervention(M[n, t, g], R[n, t, g], Q[n, t], D[n, g], a[n, g], mean, cov)
                loss[n, t, g] = 0.5 * mean_square(mean, cov, second[n, t], bias[n, t])


@compiled
def fill_intervention(M, R, Q, D, a, mean, cov):  # type: ignore[no-untyped-def]
    """Means and covariances of the units' fields and of the label's field, scaled to variance one, in one group."""
    units = M.shape[0]
    for k in range(units):
        mean[k] = M[k]
        cov[k, units] = cov[units, k] = sqrt(D) * R[k]
        for j in range(units):
            cov[k, j] = D * Q[k, j]
    mean[units], cov[units, units] = a, 1.0
