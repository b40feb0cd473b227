"""circle: the tangent kernel of wide two-layer ReLU networks on the circle, in closed form (Basri et al., 2020).

The first layer is trained. Under gradient flow on half the mean squared error, the remaining error along an
eigenfunction decays as exp(-eigenvalue t). On the circle with even density the eigenfunctions are cos k t and sin k t.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def circle_kernel(angle: np.ndarray, bias: bool = True) -> np.ndarray:
    """K as a function of the angle between two points: (cos a + 1)(pi - a) / 4 pi, without bias cos a (pi - a) / 2 pi.

    >>> circle_kernel(np.array([0.0, np.pi, 2 * np.pi])).tolist()
    [0.5, 0.0, 0.5]
    """
    turned = np.mod(np.asarray(angle, dtype=float), 2.0 * np.pi)
    a = np.minimum(turned, 2.0 * np.pi - turned)
    if bias:
        return np.asarray((np.cos(a) + 1.0) * (np.pi - a) / (4.0 * np.pi))
    return np.asarray(np.cos(a) * (np.pi - a) / (2.0 * np.pi))


def circle_eigenvalues(highest: int, bias: bool = True, points: int = 4096) -> np.ndarray:
    """Eigenvalues of frequencies 0 to `highest` for evenly spaced points.

    >>> lam = circle_eigenvalues(7)
    >>> (lam[[3, 5, 7]] * np.array([9, 25, 49]) * 2 * np.pi**2).round(3).tolist()
    [1.0, 1.0, 1.0]
    >>> bool(abs(circle_eigenvalues(7, bias=False)[[3, 5, 7]]).max() < 1e-12)
    True

    They fall as 1 / k^2, so frequency k takes k^2 times longer to learn. Without bias those of odd k from 3 on are
    zero: such a network never learns these frequencies while it stays near its initialisation.

    Args:
        highest: Highest frequency.
        bias: Whether the network has biases.
        points: Points around the circle.
    """
    if not 0 <= highest < points // 2:
        raise ValueError(
            f"`highest` should lie below half the number of points, {points // 2}. Found highest = {highest}."
        )
    row = circle_kernel(2.0 * np.pi * np.arange(points) / points, bias)
    return np.asarray(np.fft.rfft(row).real[: highest + 1] / points)


def region_half_times(
    frequency: int, densities: Sequence[float] = (4.0, 1.0), points: int = 1000, border: float = 0.4, bias: bool = True
) -> np.ndarray:
    """For each region of the circle, the time at which half of cos(frequency angle) has been learned there.

    >>> dense, sparse = region_half_times(14)
    >>> bool(3.9 < sparse / dense < 4.0)
    True

    Regions are equal arcs with points in proportion to `densities`. Points closer than `border` (in radians) to another
    region are left out, because they are learned from both regions. The time grows as k^2 / density; the ratio of two
    regions approaches that of their densities only for large frequencies.

    Args:
        frequency: Number of periods around the circle.
        densities: Relative number of points in each of the equal arcs.
        points: Points around the circle.
        border: Points closer than this to another region, in radians, are left out.
        bias: Whether the network has biases.
    """
    shares = np.asarray(densities, dtype=float)
    if shares.ndim != 1 or not len(shares) or (shares <= 0).any():
        raise ValueError(f"`densities` should be positive numbers. Found densities = {tuple(densities)}.")
    arc = 2.0 * np.pi / len(shares)
    if not 0 <= border < arc / 2.0:
        raise ValueError(f"`border` should be shorter than half a region. Found border = {border}.")
    counts = np.diff(np.round(points * np.concatenate([[0.0], np.cumsum(shares / shares.sum())])).astype(int))
    angle = np.concatenate([arc * (place + (np.arange(n) + 0.5) / n) for place, n in enumerate(counts)])
    place = np.repeat(np.arange(len(shares)), counts)
    within = angle - arc * place
    inner = (within >= border) & (within <= arc - border) if len(shares) > 1 else np.ones(len(angle), dtype=bool)
    rates, modes = np.linalg.eigh(circle_kernel(angle[:, None] - angle[None, :], bias) / points)
    target = np.cos(frequency * angle)
    start = modes.T @ target
    return np.asarray([_half_time(rates, modes[inner & (place == r)], start) for r in range(len(shares))])


def _half_time(rates: np.ndarray, modes: np.ndarray, start: np.ndarray) -> float:
    """The time when the norm of sum_i modes_i start_i exp(-rates_i t) is half of its start; infinite if never."""
    if not len(modes):
        raise ValueError("Every region should have points away from its borders. Found one without: use more points.")

    def left(time: float) -> float:
        return float(np.linalg.norm(modes @ (np.exp(-rates * time) * start)))

    whole, low, high = left(0.0), 0.0, 1.0
    while left(high) > 0.5 * whole:
        low, high = high, 2.0 * high
        if high > 1e12:
            return float("inf")
    while high - low > 1e-6 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if left(middle) > 0.5 * whole else (low, middle)
    return high
