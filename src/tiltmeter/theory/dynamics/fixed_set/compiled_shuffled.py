"""The two-time equations of SGD with a new shuffle every epoch, compiled.

Time is divided into cells of width dt = alpha / cells. chi(k, m) = 1 if the cells k and m lie in different epochs,
because an example is used once per epoch. `response[k, j + 1]` is the effect at cell k of a push at cell j; column 0 is
the effect of the start. `memory[g, k, l]` is the effect at k of the residual of a group at l, through examples used
again in between.
"""

from __future__ import annotations

import numpy as np

from tiltmeter.theory.compiled import compiled, compiled_sum


@compiled
def solve_volterra(source, kernel, step):  # type: ignore[no-untyped-def]
    """x(t) = source(t) + int_0^t kernel(t - u) x(u) du by the trapezoid rule; source (n, G), kernel (n, G, G)."""
    count, number = source.shape
    x = np.empty((count, number))
    x[0] = source[0]
    implicit = np.eye(number) - 0.5 * step * kernel[0]
    inverse = np.linalg.inv(implicit)
    right = np.empty(number)
    for i in range(1, count):
        for g in range(number):
            total = 0.0
            for h in range(number):
                inner = 0.5 * kernel[i, g, h] * x[0, h]
                for j in range(1, i):
                    inner += kernel[i - j, g, h] * x[j, h]
                total += inner
            right[g] = source[i, g] + step * total
        x[i] = inverse @ right
    return x


@compiled
def convolve(kernel, x, step):  # type: ignore[no-untyped-def]
    """int_0^t sum_g kernel_g(t - u) x_g(u) du by the trapezoid rule; both (n, G)."""
    count, number = x.shape
    out = np.zeros(count)
    for i in range(1, count):
        total = 0.0
        for g in range(number):
            total += 0.5 * (kernel[i, g] * x[0, g] + kernel[0, g] * x[i, g])
            for j in range(1, i):
                total += kernel[i - j, g] * x[j, g]
        out[i] = step * total
    return out


@compiled_sum
def _add(out, factor, row, count):  # type: ignore[no-untyped-def]
    for i in range(count):
        out[i] += factor * row[i]


@compiled_sum
def _dot(a, b, count):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(count):
        total += a[i] * b[i]
    return total


@compiled
def shuffled_run(  # type: ignore[no-untyped-def]
    cells, count, lr, alpha, decay, p, s, D, means, teachers, m, reach, start, rest, square, replace
):  # fmt: skip
    """w (count, r), Q (count) and residuals r2 (count, G) at the cells 0..count-1.

    `start` (r) is the visible part of the student, `rest` the squared length of its other part; `square` is the mean
    squared label: 1, or 0 for the equations without labels, which describe how a disturbance decays.
    """
    number, rank = means.shape
    dt = alpha / cells
    response = np.zeros((count + 1, count + 1))
    memory = np.zeros((number, count, count))
    noise, F = np.zeros((count, count)), np.zeros((number, count, count))
    w, Q, r2 = np.zeros((count + 1, rank)), np.zeros(count), np.zeros((count, number))
    scores, aims = np.zeros((count, number)), np.zeros((count, number))
    C, Y = np.zeros(count), np.zeros(count)
    Om, src = np.zeros(count), np.zeros(count)
    seen, push, total = np.zeros(count), np.zeros(count + 1), np.zeros(count)
    response[0, 0] = 1.0
    w[0] = start
    for k in range(count):
        epoch = k // cells
        # Examples of other epochs have been used before: chi R.
        for j in range(k):
            seen[j] = response[k, j + 1] if replace or j // cells != epoch else 0.0
        for g in range(number):
            own = memory[g, k]
            strength = lr * D[g] * s[g] * dt / alpha
            for j in range(k):
                if seen[j] != 0.0:
                    _add(own, -strength * seen[j], memory[g, j], j + 1)
            own[k] = 1.0
            scores[k, g] = np.dot(means[g], w[k])
            aims[k, g] = m[g] * scores[k, g] + reach[g] * np.dot(teachers[g], w[k])
        # Correlations of the part outside the span.
        Y[:] = 0.0
        for j in range(k):
            _add(Y, response[k, j + 1], noise[j], k)
        for other in range(k + 1):
            C[other] = _dot(Y, response[other, 1:], other) + response[k, 0] * response[other, 0] * rest
        Q[k] = np.dot(w[k], w[k]) + C[k]
        for g in range(number):
            c = lr * D[g] * s[g]
            for other in range(k + 1):
                Om[other] = (
                    scores[k, g] * scores[other, g] + D[g] * (np.dot(w[k], w[other]) + C[other]) + square
                    - aims[k, g] - aims[other, g]
                )  # fmt: skip
            for j in range(k + 1):
                src[j] = _dot(memory[g, j], Om, j + 1)
            own = F[g, k]
            for j in range(k):
                total[j] = 0.0
            for j in range(k):
                if seen[j] != 0.0:
                    _add(total, seen[j], F[g, j], k)
            for j in range(k):
                if replace or j // cells != epoch:
                    others = total[j] - seen[j] * F[g, j, j]
                    own[j] = src[j] - c * (response[k, j + 1] * F[g, j, j] + dt / alpha * others)
            own[k] = src[k] - c * dt / alpha * _dot(seen, own, k)
            for j in range(k):
                F[g, j, k] = own[j]
            # The mean squared residual of the training examples.
            first, single, double = 0.0, 0.0, 0.0
            for j in range(k):
                r = response[k, j + 1]
                first += r * src[j]
                single += r * r * F[g, j, j]
                double += r * (_dot(response[k, 1:], F[g, j], k) - r * F[g, j, j])
            part = dt / alpha
            r2[k, g] = Om[k] - 2.0 * c * part * first + c * c * (part * single + part * part * double)
            gain = lr * lr * p[g] * s[g] ** 2 * D[g]
            _add(noise[k], gain * dt * part, own, k)
            noise[k, k] += gain * dt * own[k]
        for j in range(k):
            noise[j, k] = noise[k, j]
        # Forward: the response and the visible part.
        push[:] = 0.0
        w[k + 1] = w[k] * (1.0 - lr * dt * decay)
        for other in range(k + 1):
            weight = 0.0
            for g in range(number):
                weight += p[g] * D[g] * s[g] * memory[g, k, other]
            _add(push, weight, response[other], other + 1)
            for g in range(number):
                pull = lr * dt * p[g] * s[g] * memory[g, k, other]
                for a in range(rank):
                    w[k + 1, a] -= pull * (
                        D[g] * w[other, a] + means[g, a] * (scores[other, g] - m[g]) - reach[g] * teachers[g, a]
                    )
        for j in range(k + 1):
            response[k + 1, j] = response[k, j] * (1.0 - lr * dt * decay) - lr * dt * push[j]
        response[k + 1, k + 1] = 1.0
    return w[:count], Q, r2
