"""The equations of motion of one problem by fixed Runge-Kutta steps, and their discrete adjoint.

State y = (M_1..G, R_1..G, Q, bias). Pulls P are constant within a piece of time; the gradient of any function of the
states at the evaluations with respect to the pulls of every piece costs about as much as two forward runs.
"""

from __future__ import annotations

import numpy as np

from tiltmeter.theory.compiled import compiled


@compiled
def _velocity(y, P, N, lr, D, m, reach, K, C, T, decay, learn, out):  # type: ignore[no-untyped-def]
    """dy/dt of `theory/ode.py`, for one problem."""
    G = D.shape[0]
    Q, bias = y[2 * G], y[2 * G + 1]
    fade, drift, noise, push = decay, decay * Q, 0.0, 0.0
    for g in range(G):
        M, R = y[g], y[G + g]
        score = M + bias
        fade += P[g] * D[g]
        drift += P[g] * (M * score + D[g] * Q - m[g] * M - reach[g] * R)
        noise += N[g] * D[g] * (score * score + D[g] * Q + 1.0 - 2.0 * (m[g] * score + reach[g] * R))
        push += P[g] * (score - m[g])
    for h in range(G):
        a, b = fade * y[h], fade * y[G + h]
        for g in range(G):
            miss, pull = P[g] * (y[g] + bias - m[g]), P[g] * reach[g]
            a += K[h, g] * miss - C[h, g] * pull
            b += C[g, h] * miss - T[g, h] * pull
        out[h], out[G + h] = -lr * a, -lr * b
    out[2 * G] = -2.0 * lr * drift + lr * lr * noise
    out[2 * G + 1] = -lr * push if learn else 0.0


@compiled
def _reverse(y, u, P, N, slope, lr, D, m, reach, K, C, T, decay, learn, back, pulls):  # type: ignore[no-untyped-def]
    """Add u' d(velocity)/dy to `back` and u' d(velocity)/dP to `pulls`; `slope` is dN/dP."""
    G = D.shape[0]
    Q, bias = y[2 * G], y[2 * G + 1]
    uQ = u[2 * G]
    ub = u[2 * G + 1] if learn else 0.0
    fade, along = decay, 0.0
    for g in range(G):
        fade += P[g] * D[g]
        along += u[g] * y[g] + u[G + g] * y[G + g]
    for g in range(G):
        M, R = y[g], y[G + g]
        score = M + bias
        miss = score - m[g]
        toward, pulled = ub, 0.0
        for h in range(G):
            toward += u[h] * K[h, g] + u[G + h] * C[g, h]
            pulled += u[h] * C[h, g] + u[G + h] * T[g, h]
        squared = score * score + D[g] * Q + 1.0 - 2.0 * (m[g] * score + reach[g] * R)
        noise = lr * lr * uQ * D[g]
        back[g] += -lr * fade * u[g] - lr * P[g] * toward - 2.0 * lr * uQ * P[g] * (2.0 * M + bias - m[g])
        back[g] += noise * N[g] * 2.0 * miss
        back[G + g] += -lr * fade * u[G + g] + 2.0 * lr * uQ * P[g] * reach[g] - 2.0 * noise * N[g] * reach[g]
        back[2 * G] += -2.0 * lr * uQ * P[g] * D[g] + noise * N[g] * D[g]
        back[2 * G + 1] += -lr * P[g] * toward - 2.0 * lr * uQ * P[g] * M + noise * N[g] * 2.0 * miss
        drift = M * score + D[g] * Q - m[g] * M - reach[g] * R
        pulls[g] += -lr * D[g] * along - lr * toward * miss + lr * pulled * reach[g] - 2.0 * lr * uQ * drift
        pulls[g] += noise * squared * slope[g]
    back[2 * G] += -2.0 * lr * uQ * decay


@compiled
def forward(start, edges, piece, rates, P, N, D, m, reach, K, C, T, decay, learn):  # type: ignore[no-untyped-def]
    """States (steps + 1, n) by classical Runge-Kutta; step i runs from edges[i] to edges[i + 1] in piece[i].

    `rates` (steps, 3) are learning rates at the beginning, middle and end of a step.
    """
    steps, n = len(edges) - 1, len(start)
    states = np.empty((steps + 1, n))
    states[0] = start
    k1, k2, k3, k4 = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for i in range(steps):
        h, p, y = edges[i + 1] - edges[i], piece[i], states[i]
        _velocity(y, P[p], N[p], rates[i, 0], D, m, reach, K, C, T, decay, learn, k1)
        _velocity(y + 0.5 * h * k1, P[p], N[p], rates[i, 1], D, m, reach, K, C, T, decay, learn, k2)
        _velocity(y + 0.5 * h * k2, P[p], N[p], rates[i, 1], D, m, reach, K, C, T, decay, learn, k3)
        _velocity(y + h * k3, P[p], N[p], rates[i, 2], D, m, reach, K, C, T, decay, learn, k4)
        states[i + 1] = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return states


@compiled
def backward(states, given, edges, piece, rates, P, N, slope, D, m, reach, K, C, T, decay, learn):  # type: ignore[no-untyped-def]
    """The gradient with respect to P (pieces, G) of a function with gradient `given` (steps + 1, n) in the states."""
    steps, n = len(edges) - 1, states.shape[1]
    found = np.zeros_like(P)
    bar = given[steps].copy()
    k1, k2, k3 = np.empty(n), np.empty(n), np.empty(n)
    for i in range(steps - 1, -1, -1):
        h, p, y = edges[i + 1] - edges[i], piece[i], states[i]
        _velocity(y, P[p], N[p], rates[i, 0], D, m, reach, K, C, T, decay, learn, k1)
        y2 = y + 0.5 * h * k1
        _velocity(y2, P[p], N[p], rates[i, 1], D, m, reach, K, C, T, decay, learn, k2)
        y3 = y + 0.5 * h * k2
        _velocity(y3, P[p], N[p], rates[i, 1], D, m, reach, K, C, T, decay, learn, k3)
        y4 = y + h * k3
        moved = bar.copy()
        b4 = np.zeros(n)
        _reverse(y4, h / 6.0 * bar, P[p], N[p], slope[p], rates[i, 2], D, m, reach, K, C, T, decay, learn, b4, found[p])
        b3 = np.zeros(n)
        u3 = h / 3.0 * bar + h * b4
        _reverse(y3, u3, P[p], N[p], slope[p], rates[i, 1], D, m, reach, K, C, T, decay, learn, b3, found[p])
        b2 = np.zeros(n)
        u2 = h / 3.0 * bar + 0.5 * h * b3
        _reverse(y2, u2, P[p], N[p], slope[p], rates[i, 1], D, m, reach, K, C, T, decay, learn, b2, found[p])
        b1 = np.zeros(n)
        u1 = h / 6.0 * bar + 0.5 * h * b2
        _reverse(y, u1, P[p], N[p], slope[p], rates[i, 0], D, m, reach, K, C, T, decay, learn, b1, found[p])
        bar = moved + b1 + b2 + b3 + b4 + given[i]
    return found
