"""The Volterra equation of multi-pass SGD on a uniform grid of times, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, error_model="numpy")
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


@njit(nogil=True, cache=True, error_model="numpy")
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
