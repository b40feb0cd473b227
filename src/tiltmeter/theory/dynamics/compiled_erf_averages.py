"""The compiled averages for erf units. Imported only when needed, because numba is slow to load."""

from __future__ import annotations

from math import sqrt

import numpy as np

from tiltmeter.theory.compiled import compiled
from tiltmeter.theory.population.compiled_erf import (
    fill_intervention,
    mean_output,
    mean_product,
    mean_slope,
    mean_square,
    tilt,
)


@compiled
def fill_averages(mean, teacher, D, a, w, Q, second, bias, along, inner, noise, outputs):  # type: ignore[no-untyped-def]
    """Fill E[G_k x], E[G_k field_l], E[G_k G_l] and E[e g_k] of one group, and return E[e].

    The factor g'(field_k) in G_k tilts the normal law; under the tilted one, E~[u g(v)] = E~[u] E~[g(v)] +
    C~_uv E~[g'(v)] for u the input or a field. A second tilt leaves the mean square of e.
    """
    units, rank = w.shape
    last = units
    intervention_mean, law = np.empty(units + 1), np.empty((units + 1, units + 1))
    once_mean, once = np.empty(units + 1), np.empty((units + 1, units + 1))
    twice_mean, twice = np.empty(units + 1), np.empty((units + 1, units + 1))
    M, R, slopes = np.zeros(units), np.zeros(units), np.empty(units + 1)
    for k in range(units):
        for i in range(rank):
            M[k] += w[k, i] * mean[i]
            R[k] += w[k, i] * teacher[i]
    fill_intervention(M, R, Q, D, a, intervention_mean, law)

    miss = bias - mean_output(intervention_mean, law, last)
    for k in range(units):
        miss += second[k] * mean_output(intervention_mean, law, k)
        outputs[k] = bias * mean_output(intervention_mean, law, k) - mean_product(intervention_mean, law, k, last)
        for j in range(units):
            outputs[k] += second[j] * mean_product(intervention_mean, law, j, k)

    for k in range(units):
        weight = second[k] * tilt(intervention_mean, law, k, once_mean, once)
        tilted_miss = bias - mean_output(once_mean, once, last)
        for j in range(units):
            tilted_miss += second[j] * mean_output(once_mean, once, j)
        for j in range(units + 1):
            slopes[j] = (second[j] if j < last else -1.0) * mean_slope(once_mean, once, j)
        shrink = 1.0 / (1.0 + law[k, k])
        for i in range(rank):
            # Covariance of x_i with field j is D w_ji, with the label's field sqrt(D) teacher_i; both before the tilt.
            own = D * w[k, i] * shrink
            total = (mean[i] - own * intervention_mean[k]) * tilted_miss
            for j in range(units + 1):
                covariance = D * w[j, i] if j < last else sqrt(D) * teacher[i]
                total += (covariance - own * law[k, j]) * slopes[j]
            along[k, i] = weight * total
        for l in range(units):
            total = once_mean[l] * tilted_miss
            for j in range(units + 1):
                total += once[l, j] * slopes[j]
            inner[k, l] = weight * total
        for l in range(k + 1):
            again = second[l] * tilt(once_mean, once, l, twice_mean, twice)
            noise[k, l] = noise[l, k] = weight * again * mean_square(twice_mean, twice, second, bias)
    return miss
