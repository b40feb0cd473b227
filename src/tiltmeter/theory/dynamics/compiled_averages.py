"""The averages of the three named losses in one compiled loop. Imported only when needed."""

from __future__ import annotations

from math import exp, log1p, pi, sqrt

from tiltmeter.theory.compiled import compiled
from tiltmeter.theory.population.compiled_normal import Phi

ROOT_TAU = sqrt(2.0 * pi)


@compiled
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


@compiled
def fill_averages(kind, edges, nodes, weights, mean, scale, r, rest, a, s, V, out):  # type: ignore[no-untyped-def]
    """Fill out (5, G) with E[f], E[f^2], E[df], E[df/dnu] and the training loss, over the panels (G, 2, E) of xi.

    kind: 0 square, 1 logistic, 2 hinge. Everything is written in the margin z = y u, with w = y score and t = V s: the
    proximal step leads from w to z.
    """
    out[:] = 0.0
    for g in range(edges.shape[0]):
        for i in range(2):
            y = 1.0 - 2.0 * i
            strength = V[g] * s[g, i]
            z = 0.0
            for e in range(edges.shape[2] - 1):
                half = 0.5 * (edges[g, i, e + 1] - edges[g, i, e])
                middle = 0.5 * (edges[g, i, e + 1] + edges[g, i, e])
                if half <= 0.0:
                    continue
                for j in range(len(nodes)):
                    xi = middle + half * nodes[j]
                    mass = half * weights[j] * exp(-0.5 * xi * xi) / ROOT_TAU
                    t = (a[g] + r[g] * xi) / rest[g]
                    w = y * (mean[g] + scale[g] * xi)
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
                    p = mass * Phi(y * t)
                    out[0, g] += p * y * force
                    out[1, g] += p * force * force
                    out[2, g] += p * bend
                    out[3, g] += mass * exp(-0.5 * t * t) / (ROOT_TAU * rest[g]) * force
                    out[4, g] += p * loss
