"""Random draws that the compiled loops share. Imported only when needed, because numba is slow to load."""

from __future__ import annotations

from math import log, sqrt

from numba import njit


@njit(nogil=True, cache=True, error_model="numpy")
def chi_square(rng, freedom, shape, scale):  # type: ignore[no-untyped-def]
    """The squared length of a standard normal vector of `freedom` components.

    It is twice a gamma variable of shape freedom / 2, drawn by the rejection method of Marsaglia and Tsang (2000),
    which is exact for shapes of at least 1. `shape` and `scale` are their d and c, computed once by
    `chi_square_constants`.
    """
    if freedom < 2:
        one = rng.standard_normal()
        return one * one * freedom
    while True:
        x = rng.standard_normal()
        root = 1.0 + scale * x
        if root <= 0.0:
            continue
        cube = root * root * root
        u = rng.random()
        square = x * x
        if u < 1.0 - 0.0331 * square * square:
            return 2.0 * shape * cube
        if log(u) < 0.5 * square + shape * (1.0 - cube + log(cube)):
            return 2.0 * shape * cube


@njit(nogil=True, cache=True, error_model="numpy")
def chi_square_constants(freedom):  # type: ignore[no-untyped-def]
    shape = 0.5 * freedom - 1.0 / 3.0 if freedom > 1 else 1.0
    return shape, 1.0 / sqrt(9.0 * shape)


@njit(nogil=True, cache=True, error_model="numpy")
def draw_group(rng, cumulative, row):  # type: ignore[no-untyped-def]
    """Draw a group by the cumulative shares of this row; with one group nothing is drawn."""
    last = cumulative.shape[1] - 1
    if last == 0:
        return 0
    u = rng.random()
    group = 0
    while group < last and u >= cumulative[row, group]:
        group += 1
    return group
