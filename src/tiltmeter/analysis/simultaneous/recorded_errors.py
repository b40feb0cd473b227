"""Bands from recorded standard errors: wider, for curves whose points were not kept."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from tiltmeter.analysis.simultaneous.band import Band
from tiltmeter.analysis.simultaneous.two_way import FEWEST_SEEDS


def recorded_errors(
    values: np.ndarray, errors: np.ndarray | None, contrasts: np.ndarray, level: float, statements: int
) -> Band:
    """Return limits of every contrast from values (seeds, looks, groups) and standard errors of the points (or None).

    >>> values, errors = np.array([[[0.5, 0.2]]]), np.array([[[0.03, 0.04]]])
    >>> band = recorded_errors(values, errors, np.array([[1.0, -1.0]]), 0.05, 1)
    >>> band.lower.round(3).tolist(), band.upper.round(3).tolist()
    ([[0.202]], [[0.398]])

    Bonferroni's correction is made for the number of `statements` (all looks, contrasts and tested curves), because the
    correlation between looks is not known. The variance is that of the points (mean over seeds), plus that of the seeds
    if there are at least five, with Student's t for few seeds. Without errors of points, two seeds are enough.
    """
    seeds = len(values)
    gaps = values @ contrasts.T
    gap = gaps.mean(0)
    of_points = np.zeros(gap.shape) if errors is None else (errors**2).mean(0) @ (contrasts**2).T
    of_seeds, freedom = np.zeros(gap.shape), np.full(gap.shape, np.inf)
    if seeds >= FEWEST_SEEDS or (errors is None and seeds > 1):
        of_seeds = gaps.var(0, ddof=1) / seeds
        with np.errstate(all="ignore"):
            freedom = (of_points + of_seeds) ** 2 / (of_seeds**2 / (seeds - 1))
    tail = level / (2.0 * max(statements, 1))
    known = np.isfinite(freedom)
    factor = np.full(gap.shape, -NormalDist().inv_cdf(tail))
    if known.any():
        from scipy.special import stdtrit

        factor = np.where(known, -stdtrit(np.where(known, np.minimum(freedom, 1e6), 1.0), tail), factor)
    half = factor * np.sqrt(of_points + of_seeds)
    return Band(gap, gap - half, gap + half)
