"""The averages of the three named losses in one compiled loop. Imported only where it runs."""

from __future__ import annotations

from math import exp, log1p

from numba import njit


@njit(nogil=True, cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def _logistic_step(w, t, guess):  # type: ignore[no-untyped-def]
    """The margin z = w + t / (1 + e^z), by Newton steps inside the bracket [w, w + t]; returns z and 1 / (1 + e^z)."""
    low, high = w, w + t
    z = min(max(guess, low), high)
    last = high - low
    wrong = 0.0
    for _ in range(200):
        wrong = 1.0 / (1.0 + exp(z)) if z > 0.0 else 1.0 - 1.0 / (1.0 + exp(-z))
        miss = z - w - t * wrong
        if miss <= 0.0:
            low = z
        if miss >= 0.0:
            high = z
        step = miss / (1.0 + t * wrong * (1.0 - wrong))
        new = z - step
        if not (low <= new <= high) or abs(step) > 0.5 * last:
            new = 0.5 * (low + high)
        last = abs(new - z)
        z = new
        if last <= 1e-14 * (1.0 + abs(z)):
            break
    return z, wrong


@njit(nogil=True, cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
def fill_averages(kind, score, weight, slope, s, V, out):  # type: ignore[no-untyped-def]
    """Fill out (G, 5) with E[f], E[f^2], E[df], E[df/dnu] and the training loss, from the nodes of a channel (G, 2, J).

    kind: 0 square, 1 logistic, 2 hinge. Everything is written in the margin z = y u, with w = y score and t = V s: the proximal step leads from w to z.
    """
    for g in range(score.shape[0]):
        for k in range(5):
            out[g, k] = 0.0
        for i in range(2):
            y = 1.0 - 2.0 * i
            strength = V[g] * s[g, i]
            z = 0.0
            for j in range(score.shape[2]):
                w = y * score[g, i, j]
                if kind == 0:
                    z = (w + strength) / (1.0 + strength)
                    force, bend = s[g, i] * (1.0 - z), -s[g, i] / (1.0 + strength)
                    loss = 0.5 * (1.0 - z) * (1.0 - z)
                elif kind == 1:
                    z, wrong = _logistic_step(w, strength, z)
                    curve = wrong * (1.0 - wrong)
                    force, bend = s[g, i] * wrong, -s[g, i] * curve / (1.0 + strength * curve)
                    loss = log1p(exp(-z)) if z > 0.0 else log1p(exp(z)) - z
                elif w >= 1.0:
                    force, bend, loss = 0.0, 0.0, 0.0
                elif w > 1.0 - strength:
                    force, bend, loss = (1.0 - w) / V[g], -1.0 / V[g], 0.0
                else:
                    force, bend, loss = s[g, i], 0.0, 1.0 - w - strength
                p = weight[g, i, j]
                out[g, 0] += p * y * force
                out[g, 1] += p * force * force
                out[g, 2] += p * bend
                out[g, 3] += slope[g, i, j] * y * force
                out[g, 4] += p * loss
