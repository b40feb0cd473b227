"""Bands over seeds: several seeds on the same points, seeds alone, or recorded standard errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from tiltmeter.leaders.bands import (
    BLOCK,
    DRAWS,
    PERMUTATIONS,
    ROUNDING,
    Band,
    Limits,
    balanced,
)
from tiltmeter.leaders.points import PointCurve

#: With fewer trainings than this nothing is said about trainings like these.
FEWEST_SEEDS = 3


def two_way(
    curves: Sequence[PointCurve],
    codes: np.ndarray,
    contrasts: np.ndarray | Mapping[str, np.ndarray],
    level: float = 0.05,
    draws: int = DRAWS,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> dict[str, Band]:
    """Bands for the mean over all trainings like these, from at least three that were judged on the same points.

    >>> rng = np.random.default_rng(0)
    >>> codes = np.repeat([0, 1], 100)
    >>> seeds = PointCurve("loss", rng.normal(size=(10, 3, 200)))
    >>> two_way([seeds], codes, np.array([[1.0, -1.0]]))["loss"].shown.any()
    np.False_
    """
    limits = TrainingLimits(curves, codes, contrasts, draws, permutations, seed)
    return limits.of([curve.name for curve in curves], level)


class TrainingLimits(Limits):
    """The same for the mean over all trainings like these, from at least three that were judged on the same points.

    Values of a curve have shape (seeds, evaluations, points). Points and seeds are crossed random factors. For the
    points, the values averaged over seeds get the limits of one run (`bands`). For the seeds, the differences averaged
    over points have a variance. It is multiplied by the critical value of the maximum over evaluations of Gaussian
    copies of both parts, mapped to Student's t, because few seeds estimate their own scatter poorly. The two distances
    are added in squares. The scatter over seeds alone would miss the error of the points, which all seeds share. The
    scatter is pooled over the evaluations, or over those of `paths` where a curve holds only some of them.
    """

    def __init__(
        self,
        curves: Sequence[PointCurve],
        codes: np.ndarray,
        contrasts: np.ndarray | Mapping[str, np.ndarray],
        draws: int = DRAWS,
        permutations: int = PERMUTATIONS,
        seed: int = 0,
        paths: Mapping[str, PointCurve] | None = None,
    ) -> None:
        for curve in curves:
            seeds = len(curve.values) if curve.values.ndim == 3 else 1
            if seeds < FEWEST_SEEDS:
                raise ValueError(
                    f"At least {FEWEST_SEEDS} seeds are needed to speak of trainings like these. "
                    f"Found {seeds} of {curve.name!r}."
                )
        super().__init__([curve.averaged for curve in curves], codes, contrasts, draws, permutations, seed)
        self._parts = {
            curve.name: _Seeds(curve, codes, self._contrasts[curve.name], (paths or {}).get(curve.name))
            for curve in curves
        }
        self._largest = _largest(list(self._parts.values()), len(codes), draws, seed)

    def _before_the_gate(self, names: Sequence[str], level: float) -> dict[str, Band]:
        from scipy.special import ndtr, ndtri, stdtrit

        found = super()._before_the_gate(names, level)
        columns = np.stack([self._largest[name] for name in names], 1)
        # Few seeds estimate the correlation between evaluations poorly, and the points alone estimate it better.
        limits = np.maximum(balanced(columns[:, :, 0], level), balanced(columns[:, :, 1], level))
        for name, limit in zip(names, np.maximum(limits, -ndtri(level / 2.0)), strict=True):
            part = self._parts[name]
            factor = stdtrit(len(part.curve.values) - 1, ndtr(limit))
            found[name] = _widened(found[name], factor**2 * part.variance, part.curve.rate)
        return found


def _widened(band: Band, variance: np.ndarray, rate: bool) -> Band:
    """Return both distances of the limits with that of the seeds added in squares; differences of rates end at 1."""
    below, above = (np.sqrt((limit - band.gap) ** 2 + variance) for limit in (band.lower, band.upper))
    most = 1.0 if rate else np.inf
    return replace(band, lower=np.maximum(band.gap - below, -most), upper=np.minimum(band.gap + above, most))


def _largest(parts: list[_Seeds], points: int, draws: int, seed: int) -> dict[str, np.ndarray]:
    """For each curve (draws, 2): the maximum over evaluations of Gaussian copies of points and seeds, and of points."""
    rng = np.random.default_rng([seed, 3])
    rows = int(np.clip(BLOCK // max(points, 1), 8, 256))
    sups: list[list[np.ndarray]] = [[] for _ in parts]
    for start in range(0, draws, rows):
        count = min(rows, draws - start)
        of_points = rng.standard_normal((count, points), dtype=np.float32)
        of_seeds = rng.standard_normal((count, len(parts[0].curve.values)), dtype=np.float32)
        for part, kept in zip(parts, sups, strict=True):
            kept.append(part.largest(of_points, of_seeds))
    return {part.curve.name: np.concatenate(kept) for part, kept in zip(parts, sups, strict=True)}


class _Seeds:
    """One curve of several seeds: the variance of their differences, and Gaussian copies of points and seeds."""

    def __init__(
        self, curve: PointCurve, codes: np.ndarray, contrasts: np.ndarray, path: PointCurve | None = None
    ) -> None:
        self.curve, groups, seeds = curve, contrasts.shape[1], len(curve.values)
        counts = curve.counts(codes, groups)
        self.used = np.array([bool((counts[row != 0] > 0).all()) for row in contrasts])
        self.contrasts = contrasts[self.used]
        values = curve.averaged.values
        members = codes if curve.where is None else np.where(curve.where, codes, groups)
        shares = np.zeros((groups, curve.evaluations, len(codes)), dtype=np.float32)
        variance = np.zeros((groups, curve.evaluations))
        for group in range(groups):
            own = np.flatnonzero(members == group)
            if len(own):
                away = values[:, own] - values[:, own].mean(1, keepdims=True)
                variance[group] = (away**2).mean(1) / max(len(own) - 1, 1)
                shares[group][:, own] = away / len(own)
        gaps = self.contrasts @ _means(curve, members, groups)  # (seeds, contrasts, evaluations)
        pooled = gaps if path is None else self.contrasts @ _means(path, members, groups)
        of_seeds = np.broadcast_to(pooled.var(0, ddof=1).mean(1, keepdims=True), gaps.shape[1:]) / seeds
        floor = (ROUNDING * float(np.abs(values).max(initial=0.0)) + 1e-15) ** 2
        of_points = np.maximum(self.contrasts**2 @ variance, floor)
        self._points_error = np.sqrt(of_points).astype(np.float32)
        self._error = np.sqrt(of_points + of_seeds).astype(np.float32)
        self._points = [np.ascontiguousarray(share.T) for share in shares]
        self._seeds = ((gaps - gaps.mean(0)) / np.sqrt(seeds * (seeds - 1))).reshape(seeds, -1).astype(np.float32)
        self.variance = np.full((curve.evaluations, len(contrasts)), np.nan)
        self.variance[:, self.used] = of_seeds.T

    def largest(self, points: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        """(draws, 2): the largest standardised deviation of points and seeds together, and of points alone."""
        if not self.used.any():
            return np.zeros((len(points), 2))
        of_points = self.contrasts.astype(np.float32) @ np.stack([points @ share for share in self._points], 1)
        both = of_points + (seeds @ self._seeds).reshape(of_points.shape)
        ratios = both / self._error, of_points / self._points_error
        return np.stack([np.abs(ratio).max((1, 2)) for ratio in ratios], 1).astype(float)


def _means(curve: PointCurve, members: np.ndarray, groups: int) -> np.ndarray:
    """(seeds, groups, evaluations): the mean of every group, zero of one without points."""
    found = np.zeros((len(curve.values), groups, curve.evaluations))
    for group in range(groups):
        own = np.flatnonzero(members == group)
        if len(own):
            found[:, group] = curve.values[:, :, own].mean(2, dtype=np.float64)
    return found


def seed_bands(values: np.ndarray, contrasts: np.ndarray, level: float = 0.05, draws: int = DRAWS) -> Band:
    """Return limits for the mean over all seeds, from values (seeds, evaluations, groups) of at least three seeds.

    >>> rng = np.random.default_rng(1)
    >>> found = seed_bands(rng.normal(size=(40, 10, 2)) + [1.5, 0.0], np.array([[1.0, -1.0]]))
    >>> found.shown.ravel().tolist()
    [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]

    The critical value is that of the maximum over evaluations of Gaussian copies of the scatter, widened by Student's
    t. Measured error rates at 5 %: 8 % with five or ten seeds, 4 % with forty. Do not use it for seeds that share
    held-out points: the error due to these points is common to all seeds and is not seen in their scatter (use
    `two_way`)."""
    from scipy.special import ndtr, ndtri, stdtrit

    seeds = len(values)
    if seeds < FEWEST_SEEDS:
        raise ValueError(f"There should be at least {FEWEST_SEEDS} seeds to know their scatter. Found {seeds}.")
    gaps = values @ contrasts.T
    gap = gaps.mean(0)
    error = np.sqrt(gaps.var(0, ddof=1) / seeds)
    away = (gaps - gap) / np.sqrt(seeds * (seeds - 1))
    scale = np.where(error > 0, error, np.inf)
    known = np.isfinite(away).all(0)
    flat = np.where(known, away / scale, 0.0).reshape(seeds, -1).astype(np.float32)
    normal = np.random.default_rng(3).standard_normal((draws, seeds), dtype=np.float32)
    largest = np.abs(normal @ flat).max(1, initial=0.0)
    critical = max(float(balanced(largest[:, None].astype(float), level)[0]), float(-ndtri(level / 2.0)))
    half = float(stdtrit(seeds - 1, ndtr(critical))) * error
    return Band(gap, gap - half, gap + half)


def recorded_errors(
    values: np.ndarray, errors: np.ndarray | None, contrasts: np.ndarray, level: float, statements: int
) -> Band:
    """Return limits of every contrast from values (seeds, evaluations, groups) and standard errors of the points (or
    None).

    >>> values, errors = np.array([[[0.5, 0.2]]]), np.array([[[0.03, 0.04]]])
    >>> band = recorded_errors(values, errors, np.array([[1.0, -1.0]]), 0.05, 1)
    >>> band.lower.round(3).tolist(), band.upper.round(3).tolist()
    ([[0.202]], [[0.398]])

    Bonferroni's correction is made for the number of `statements` (all evaluations, contrasts and tested curves),
    because the correlation between evaluations is not known. The variance is that of the points (mean over seeds), plus
    that of the seeds if there are at least five, with Student's t for few seeds. Without errors of points, two seeds
    are enough."""
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
