"""Two-way bands: several seeds on the same points, for statements about the recipe rather than about these runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tiltmeter.analysis.simultaneous.balance import balanced
from tiltmeter.analysis.simultaneous.band import Band
from tiltmeter.analysis.simultaneous.bands import DRAWS, PERMUTATIONS, Bootstrap, asked_of, gated
from tiltmeter.analysis.simultaneous.bootstrap_weights import BLOCK
from tiltmeter.analysis.simultaneous.permutation_gate import ROUNDING, PermutationGate
from tiltmeter.analysis.simultaneous.point_curve import PointCurve

#: With fewer seeds than this nothing is said about the recipe.
FEWEST_SEEDS = 5


def two_way(
    curves: Sequence[PointCurve],
    codes: np.ndarray,
    contrasts: np.ndarray | Mapping[str, np.ndarray],
    level: float = 0.05,
    draws: int = DRAWS,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    recipe: bool = True,
) -> dict[str, Band]:
    """Bands for the mean over all seeds of the recipe, from at least five seeds that looked at the same points.

    >>> rng = np.random.default_rng(0)
    >>> codes = np.repeat([0, 1], 100)
    >>> shared = rng.normal(size=200)  # the same points in every seed
    >>> seeds = PointCurve("loss", shared + 0.01 * rng.normal(size=(5, 3, 200)))
    >>> two_way([seeds], codes, np.array([[1.0, -1.0]]))["loss"].shown.any()
    np.False_

    `curves` hold values of shape (seeds, looks, points). The uncertainty has two parts (Owen, 2007). For the points,
    the values averaged over seeds get the limits of one run (`bands`). For the seeds, the differences averaged over
    points have a variance. It is multiplied by the critical value of the maximum over looks of Gaussian copies of both
    parts, mapped to Student's t, because few seeds estimate their own scatter poorly. The two distances are added in
    squares. The scatter over seeds alone would miss the error of the points, which all seeds share. With `recipe=False`
    the bands are about the mean of these runs on new points, and two seeds are enough.
    """
    from scipy.special import ndtr, ndtri, stdtrit

    chosen = list(curves)
    by_curve = asked_of(chosen, codes, contrasts)
    for curve in chosen:
        if curve.values.ndim != 3 or len(curve.values) < (FEWEST_SEEDS if recipe else 2):
            seeds = len(curve.values) if curve.values.ndim == 3 else 1
            raise ValueError(
                f"`two_way` needs at least {FEWEST_SEEDS} seeds to speak of a recipe, two to speak of these runs "
                f"(recipe=False). Found {seeds} of {curve.name!r}."
            )
    averaged = [curve.averaged for curve in chosen]
    found = Bootstrap(averaged, codes, by_curve, draws, seed).bands(list(by_curve), level)
    if recipe:
        parts = [_Seeds(curve, codes, by_curve[curve.name]) for curve in chosen]
        limits = np.maximum(_critical(parts, len(codes), level, draws, seed), -ndtri(level / 2.0))
        for part, limit in zip(parts, limits, strict=True):
            factor = stdtrit(len(part.curve.values) - 1, ndtr(limit))
            found[part.curve.name] = _widened(found[part.curve.name], factor**2 * part.variance, part.curve.rate)
    if not any(band.shown.any() for band in found.values()):
        return found
    gate = PermutationGate(averaged, codes, by_curve, permutations, np.random.default_rng([seed, 2]))
    return gated(found, gate, level)


def _widened(band: Band, variance: np.ndarray, rate: bool) -> Band:
    """Return both distances of the limits with that of the seeds added in squares; differences of rates end at 1."""
    below, above = (np.sqrt((limit - band.gap) ** 2 + variance) for limit in (band.lower, band.upper))
    most = 1.0 if rate else np.inf
    return Band(band.gap, np.maximum(band.gap - below, -most), np.minimum(band.gap + above, most))


def _critical(parts: list[_Seeds], points: int, level: float, draws: int, seed: int) -> np.ndarray:
    """Return, for each curve, the critical value of the maximum over looks of Gaussian copies of points and seeds.

    Few seeds estimate the correlation between looks poorly, and the points alone estimate it better: the larger value
    is used.
    """
    rng = np.random.default_rng([seed, 3])
    rows = int(np.clip(BLOCK // max(points, 1), 8, 256))
    sups: list[list[np.ndarray]] = [[] for _ in parts]
    for start in range(0, draws, rows):
        count = min(rows, draws - start)
        of_points = rng.standard_normal((count, points), dtype=np.float32)
        of_seeds = rng.standard_normal((count, len(parts[0].curve.values)), dtype=np.float32)
        for part, kept in zip(parts, sups, strict=True):
            kept.append(part.largest(of_points, of_seeds))
    columns = np.stack([np.concatenate(kept) for kept in sups], 1)
    return np.asarray(np.maximum(balanced(columns[:, :, 0], level), balanced(columns[:, :, 1], level)))


class _Seeds:
    """One curve of several seeds: the variance of their differences, and Gaussian copies of points and seeds."""

    def __init__(self, curve: PointCurve, codes: np.ndarray, contrasts: np.ndarray) -> None:
        self.curve, groups, seeds = curve, contrasts.shape[1], len(curve.values)
        counts = curve.counts(codes, groups)
        self.used = np.array([bool((counts[row != 0] > 0).all()) for row in contrasts])
        self.contrasts = contrasts[self.used]
        values = curve.averaged.values
        members = codes if curve.where is None else np.where(curve.where, codes, groups)
        per_seed = np.zeros((seeds, groups, curve.looks))
        shares = np.zeros((groups, curve.looks, len(codes)), dtype=np.float32)
        variance = np.zeros((groups, curve.looks))
        for group in range(groups):
            own = np.flatnonzero(members == group)
            if len(own):
                per_seed[:, group] = curve.values[:, :, own].mean(2, dtype=np.float64)
                away = values[:, own] - values[:, own].mean(1, keepdims=True)
                variance[group] = (away**2).mean(1) / max(len(own) - 1, 1)
                shares[group][:, own] = away / len(own)
        gaps = self.contrasts @ per_seed  # (seeds, contrasts, looks)
        of_seeds = gaps.var(0, ddof=1) / seeds
        floor = (ROUNDING * float(np.abs(values).max(initial=0.0)) + 1e-15) ** 2
        of_points = np.maximum(self.contrasts**2 @ variance, floor)
        self._points_error = np.sqrt(of_points).astype(np.float32)
        self._error = np.sqrt(of_points + of_seeds).astype(np.float32)
        self._points = [np.ascontiguousarray(share.T) for share in shares]
        self._seeds = ((gaps - gaps.mean(0)) / np.sqrt(seeds * (seeds - 1))).reshape(seeds, -1).astype(np.float32)
        self.variance = np.full((curve.looks, len(contrasts)), np.nan)
        self.variance[:, self.used] = of_seeds.T

    def largest(self, points: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        """(draws, 2): the largest standardised deviation of points and seeds together, and of points alone."""
        if not self.used.any():
            return np.zeros((len(points), 2))
        of_points = self.contrasts.astype(np.float32) @ np.stack([points @ share for share in self._points], 1)
        both = of_points + (seeds @ self._seeds).reshape(of_points.shape)
        ratios = both / self._error, of_points / self._points_error
        return np.stack([np.abs(ratio).max((1, 2)) for ratio in ratios], 1).astype(float)
