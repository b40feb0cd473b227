"""Chebyshev: integrates a stiff gradient flow with long steps.

The Runge-Kutta-Chebyshev method of second order (Sommeijer, Shampine and Verwer, J. Comput. Appl. Math. 88, 315, 1998):
with s evaluations, a stable step can be s^2 times as long as that of the plain method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

Slope = Callable[[np.ndarray], np.ndarray]

_DAMPING = 2.0 / 13.0
#: The most evaluations of one step: beyond it, rounding errors grow.
_MOST = 200


def flow(slope: Slope, start: np.ndarray, times: np.ndarray, radius: float, tolerance: float) -> Iterator[np.ndarray]:
    """The solution of dy/dt = slope(y), y(0) = start, at these increasing times; `radius` bounds the stiffness.

    >>> found = flow(lambda y: -np.array([1.0, 1e4]) * y, np.ones(2), np.array([1.0, 2.0]), 1e4, 1e-7)
    >>> np.round([y[0] for y in found], 5).tolist(), np.exp([-1.0, -2.0]).round(5).tolist()
    ([0.36788, 0.13534], [0.36788, 0.13534])

    Steps are chosen so that the error of each stays below `tolerance` times the length of y so far.
    """
    y, at = start.copy(), 0.0
    first = slope(y)
    speed, scale = float(np.linalg.norm(first)), float(np.linalg.norm(start))
    step = 1e-3 * (scale / speed if scale and speed else 1.0 / max(radius, 1e-300))
    longest = (_MOST**2 - 1) / (1.54 * max(radius, 1e-300))
    for goal in times:
        while at < goal:
            step = min(step, longest, goal - at)
            step = goal - at if goal - at - step < 1e-9 * goal else step
            stages = max(2, 1 + int(np.ceil(np.sqrt(1.0 + 1.54 * step * radius))))
            new = _one(slope, y, first, step, stages)
            last = slope(new)
            scale = max(scale, float(np.linalg.norm(new)))
            error = float(np.linalg.norm(0.8 * (y - new) + 0.4 * step * (first + last)))
            if not np.isfinite(error):
                yield np.full_like(y, np.nan)
                return
            ratio = error / max(tolerance * scale, 1e-300)
            if ratio <= 1.0:
                y, first, at = new, last, at + step
            step *= min(4.0, max(0.1, 0.8 / max(ratio, 1e-12) ** (1.0 / 3.0)))
        yield y


def _one(slope: Slope, y: np.ndarray, first: np.ndarray, step: float, stages: int) -> np.ndarray:
    factors = _factors(stages)
    before, now = y, y + factors[0][0] * step * first
    for mu, nu, tilde, gamma in factors[1:]:
        fresh = (1.0 - mu - nu) * y + mu * now + nu * before + step * (tilde * slope(now) + gamma * first)
        before, now = now, fresh
    return now


@lru_cache(maxsize=256)
def _factors(stages: int) -> tuple[tuple[float, ...], ...]:
    """Return the coefficients of all stages; the first entry holds only that of the first stage."""
    w0 = 1.0 + _DAMPING / stages**2
    t, d, dd = [1.0, w0], [0.0, 1.0], [0.0, 0.0]  # Chebyshev polynomials at w0 and their two derivatives
    for j in range(2, stages + 1):
        t.append(2.0 * w0 * t[j - 1] - t[j - 2])
        d.append(2.0 * t[j - 1] + 2.0 * w0 * d[j - 1] - d[j - 2])
        dd.append(4.0 * d[j - 1] + 2.0 * w0 * dd[j - 1] - dd[j - 2])
    w1 = d[stages] / dd[stages]
    b = [0.0, 0.0] + [dd[j] / d[j] ** 2 for j in range(2, stages + 1)]
    b[0] = b[1] = b[2]
    rows: list[tuple[float, ...]] = [(b[1] * w1,)]
    for j in range(2, stages + 1):
        tilde = 2.0 * b[j] * w1 / b[j - 1]
        gamma = -(1.0 - b[j - 1] * t[j - 1]) * tilde
        rows.append((2.0 * b[j] * w0 / b[j - 1], -b[j] / b[j - 2], tilde, gamma))
    return tuple(rows)
