"""The compiled loop behind `rates`. Imported only when it is used, because numba is slow to load."""

from __future__ import annotations

from math import inf, isnan, nan, sqrt

from tiltmeter.theory.compiled import compiled
from tiltmeter.theory.population.compiled_normal import Phi, bivariate


@compiled
def fill_rates(start, stop, M, R, Q, bias, D, a, error, positive_rate, tpr, fpr, ppv):  # type: ignore[no-untyped-def]
    """Fill the rates (N, T, G) of items start..stop from overlaps M, R (N, T, G) and Q, bias (N, T)."""
    for n in range(start, stop):
        for g in range(M.shape[2]):
            positives, negatives = Phi(a[n, g]), Phi(-a[n, g])
            for i in range(M.shape[1]):
                length = Q[n, i]
                score = M[n, i, g] + bias[n, i]
                if isnan(score) or isnan(length):
                    # min and max below would turn NaN into a rate.
                    error[n, i, g] = positive_rate[n, i, g] = tpr[n, i, g] = fpr[n, i, g] = ppv[n, i, g] = nan
                    continue
                if length > 0.0:
                    threshold = score / sqrt(D[n, g] * length)
                    r = R[n, i, g] / sqrt(length)
                    r = min(1.0, max(-1.0, r))
                else:
                    # A student of length zero gives every point the same score: positive only if that is above 0.
                    threshold = inf if score > 0.0 else -inf
                    r = 0.0
                decided = Phi(threshold)
                both = bivariate(threshold, a[n, g], r)
                both = min(both, decided, positives)
                wrong = decided + positives - 2.0 * both
                error[n, i, g] = min(1.0, max(0.0, wrong))
                positive_rate[n, i, g] = decided
                tpr[n, i, g] = min(1.0, both / positives)
                fpr[n, i, g] = min(1.0, max(0.0, decided - both) / negatives)
                ppv[n, i, g] = both / decided
