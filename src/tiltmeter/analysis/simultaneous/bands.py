"""Bands of one run: limits of all differences at all looks in all chosen curves, at one error rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tiltmeter.analysis.simultaneous.balance import balanced
from tiltmeter.analysis.simultaneous.band import Band
from tiltmeter.analysis.simultaneous.bootstrap_weights import bootstrap_weights
from tiltmeter.analysis.simultaneous.permutation_gate import ROUNDING, PermutationGate
from tiltmeter.analysis.simultaneous.point_curve import PointCurve, check_codes
from tiltmeter.analysis.simultaneous.rate_limits import clopper_pearson, recovered

#: Draws of the bootstrap, and permutations of the gate.
DRAWS, PERMUTATIONS = 1999, 999


def bands(
    curves: Sequence[PointCurve],
    codes: np.ndarray,
    contrasts: np.ndarray | Mapping[str, np.ndarray],
    level: float = 0.05,
    draws: int = DRAWS,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> dict[str, Band]:
    """Return the band of every contrast in each curve; all of them hold together with probability 1 - `level`.

    `codes` (points,) says to which group a point belongs; `contrasts` (contrasts, groups) is one for all curves or one
    for each. The bootstrap resamples the points of each group, in the same way for all looks and curves. A real-valued
    curve gets bootstrap-t limits, with a separate critical value for each tail. A rate gets the Clopper-Pearson limits
    of its groups at the critical value of the largest standardised difference. Critical values are balanced over
    curves. Where the permutation gate does not pass, the band is widened to include zero. The result depends only on
    the points and `seed`.

    The limits are for the networks of this run and new points from the same population. They say nothing about other
    seeds: see `two_way`. The cost is about draws x points x looks x curves multiplications, as matrix products.
    """
    return families(curves, codes, contrasts, [[curve.name for curve in curves]], level, draws, permutations, seed)[0]


def families(
    curves: Sequence[PointCurve],
    codes: np.ndarray,
    contrasts: np.ndarray | Mapping[str, np.ndarray],
    asked: Sequence[Sequence[str]],
    level: float = 0.05,
    draws: int = DRAWS,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> list[dict[str, Band]]:
    """Return bands of several sets of curves from the same draws, each set with its own error rate `level`.

    Testing one curve alone and five together costs as much as testing the five.
    """
    chosen = list(curves)
    by_curve = asked_of(chosen, codes, contrasts)
    drawn = Bootstrap(chosen, codes, by_curve, draws, seed)
    found = [drawn.bands(names, level) for names in asked]
    if any(band.shown.any() for family in found for band in family.values()):
        gate = PermutationGate(chosen, codes, by_curve, permutations, np.random.default_rng([seed, 2]))
        found = [gated(family, gate, level) for family in found]
    return found


def gated(family: dict[str, Band], gate: PermutationGate, level: float) -> dict[str, Band]:
    """Return the bands, widened to include zero wherever random groups differ as much."""
    passed = gate.passed(list(family), level)
    return {name: band.gated(passed[name]) for name, band in family.items()}


def asked_of(
    curves: list[PointCurve], codes: np.ndarray, contrasts: np.ndarray | Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the contrasts of every curve, after all checks."""
    found = {c.name: contrasts[c.name] if isinstance(contrasts, Mapping) else contrasts for c in curves}
    check_codes(curves, codes, next(iter(found.values())).shape[1] if found else 0)
    return found


class Bootstrap:
    """The largest deviations of every curve in many draws of the points, for bands of any set of the curves."""

    def __init__(
        self, curves: list[PointCurve], codes: np.ndarray, contrasts: Mapping[str, np.ndarray], draws: int, seed: int
    ) -> None:
        self._parts = {curve.name: _Part(curve, codes, contrasts[curve.name]) for curve in curves}
        parts = list(self._parts.values())
        groups = next(iter(contrasts.values())).shape[1]
        members = [np.flatnonzero(codes == group) for group in range(groups)]
        stacked = [np.concatenate([part.columns(own) for part in parts], 1) for own in members]
        # Groups are drawn in the order of their first points, so that their names and order do not matter.
        order = sorted(range(groups), key=lambda group: members[group][0] if len(members[group]) else len(codes))
        sups: list[list[np.ndarray]] = [[] for _ in parts]
        rng = np.random.default_rng([seed, 1])
        for block in bootstrap_weights([len(members[group]) for group in order], draws, rng):
            drawn = dict(zip(order, block, strict=True))
            products = [drawn[group] @ columns for group, columns in enumerate(stacked)]
            start = 0
            for part, kept in zip(parts, sups, strict=True):
                kept.append(part.largest([product[:, start : start + part.width] for product in products]))
                start += part.width
        self._columns = {name: np.concatenate(kept) for name, kept in zip(self._parts, sups, strict=True)}

    def bands(self, names: Sequence[str], level: float) -> dict[str, Band]:
        """The bands of these curves together, before the gate."""
        columns = [self._columns[name] for name in names]
        limits = balanced(np.concatenate(columns, 1), level)
        edges = np.cumsum([column.shape[1] for column in columns])[:-1]
        return {
            name: self._parts[name].band(limit, level)
            for name, limit in zip(names, np.split(limits, edges), strict=True)
        }


class _Part:
    """One curve: the matrix that is multiplied with the weights, and the limits computed from the product."""

    def __init__(self, curve: PointCurve, codes: np.ndarray, contrasts: np.ndarray) -> None:
        self.curve = curve
        groups = contrasts.shape[1]
        self.counts = curve.counts(codes, groups)
        judged = curve.judged(codes, groups)
        self.used = np.array([bool(judged[row != 0].all()) for row in contrasts])
        self.contrasts = contrasts[self.used]
        self.total = len(contrasts)
        self.width = curve.looks * (1 if curve.rate else 2) + (curve.where is not None)
        where = np.ones(len(codes), dtype=bool) if curve.where is None else curve.where
        self.where = where
        members = np.where(where, codes, groups)
        values = curve.values
        self.mean = np.zeros((groups, curve.looks))
        self.variance = np.zeros((groups, curve.looks))
        for group in range(groups):
            own = values[:, members == group]
            if own.shape[1]:
                self.mean[group] = own.mean(1, dtype=np.float64)
            if own.shape[1] > 1:
                self.variance[group] = own.var(1, dtype=np.float64, ddof=1) / own.shape[1]
        if curve.rate:
            # Shares of several seeds are judged as single decisions are. They vary less from point to point, but where
            # few points are hard the points drawn may hold none of these, and their scatter would not tell.
            middle = (self.mean * self.counts[:, None] + 2.0) / (self.counts[:, None] + 4.0)
            self.variance = middle * (1.0 - middle) / (self.counts[:, None] + 4.0)
        self.codes = codes
        self.floor = ROUNDING * float(np.abs(values).max(initial=0.0)) + np.finfo(np.float32).tiny
        self.error = np.maximum(np.sqrt(self.contrasts**2 @ self.variance), self.floor)

    def columns(self, own: np.ndarray) -> np.ndarray:
        """(points of a group, columns): centred values at every look, their squares, and whether a point counts."""
        where = self.where[own]
        code = self.codes[own[0]] if len(own) else 0
        values = self.curve.values[:, own]
        centred = np.where(where, values - self.mean[code][:, None], 0.0).astype(np.float32)
        found = [centred] if self.curve.rate else [centred, centred**2]
        if self.curve.where is not None:
            found.append(where[None].astype(np.float32))
        return np.ascontiguousarray(np.concatenate(found).T)

    def largest(self, products: list[np.ndarray]) -> np.ndarray:
        """(draws, 1 or 2): the largest standardised deviation of a draw, up and down or of either sign."""
        looks = self.curve.looks
        shape = (len(products[0]), len(products), looks)
        away, spread = np.empty(shape, dtype=np.float32), np.empty(shape, dtype=np.float32)
        for group, product in enumerate(products):
            drawn = product[:, -1:] if self.curve.where is not None else self.counts[group]
            away[:, group] = product[:, :looks] / np.maximum(drawn, 1)
            if not self.curve.rate:
                second = product[:, looks : 2 * looks] / np.maximum(drawn, 1)
                spread[:, group] = (second - away[:, group] ** 2) / np.maximum(drawn - 1, 1)
        if not self.used.any():
            return np.zeros((shape[0], 1 if self.curve.rate else 2))
        weights = self.contrasts.astype(np.float32)
        moved = weights @ away
        if self.curve.rate:
            return np.asarray(np.abs(moved / self.error.astype(np.float32)).max((1, 2))[:, None])
        ratio = moved / np.maximum(np.sqrt(np.maximum(weights**2 @ spread, 0.0)), np.float32(self.floor))
        return np.stack([ratio.max((1, 2)), -ratio.min((1, 2))], 1)

    def band(self, limits: np.ndarray, level: float) -> Band:
        from scipy.special import ndtr, ndtri

        gap = self.contrasts @ self.mean
        limits = np.maximum(limits, -ndtri(level / 2.0))  # never narrower than at one look
        if self.curve.rate:
            counts = np.maximum(self.counts[:, None], 1.0)
            # For single decisions the hits are whole numbers up to rounding, including none and all.
            hits = self.mean * counts
            whole = np.rint(hits)
            hits = np.where(np.abs(hits - whole) < 1e-6 * counts, whole, hits)
            low, high = clopper_pearson(hits, counts, float(ndtr(-limits[0])))
            lower, upper = recovered(self.mean, low, high, self.contrasts)
        else:
            lower, upper = gap - limits[0] * self.error, gap + limits[1] * self.error
        wide = [np.full((self.curve.looks, self.total), np.nan) for _ in range(3)]
        for array, part in zip(wide, (gap, lower, upper), strict=True):
            array[:, self.used] = part.T
        return Band(*wide)
