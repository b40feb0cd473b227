"""Permutation gate: how large the largest difference over all looks is when groups are assigned at random."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tiltmeter.analysis.simultaneous.balance import balanced
from tiltmeter.analysis.simultaneous.bootstrap_weights import BLOCK
from tiltmeter.analysis.simultaneous.point_curve import PointCurve

#: A spread below this share of the largest value is rounding.
ROUNDING = 1e-7


class PermutationGate:
    """Tests whether differences exceed those of random groups, for any set of the curves.

    Groups are permuted among the points that count: for a true-positive rate, among the positives. The statistic is the
    difference over the spread of all points; its largest value over looks and contrasts is compared with that of
    `permutations` random assignments, balanced over curves. If the groups are exchangeable, the probability that any
    curve passes anywhere is at most `level`, whatever the distribution. Curves of all points and curves of some points
    share `level` in proportion to their number.

    Passing does not show that means differ: the spread may differ instead. So a band must exclude zero as well.
    """

    def __init__(
        self,
        curves: Sequence[PointCurve],
        codes: np.ndarray,
        contrasts: Mapping[str, np.ndarray],
        permutations: int,
        rng: np.random.Generator,
    ) -> None:
        self._parts = {curve.name: _Part(curve, codes, contrasts[curve.name]) for curve in curves}
        blocks = list(_deals(list(self._parts.values()), permutations, rng))
        self._columns = {
            name: np.concatenate(rows) for name, rows in zip(self._parts, zip(*blocks, strict=True), strict=True)
        }

    def passed(self, names: Sequence[str], level: float) -> dict[str, np.ndarray]:
        """Return, for each of these curves, where the difference passes, as (looks, contrasts)."""
        found: dict[str, np.ndarray] = {}
        for some in (False, True):
            scheme = [name for name in names if (self._parts[name].curve.where is not None) == some]
            if scheme:
                columns = np.stack([self._columns[name] for name in scheme], 1)
                limits = balanced(columns, level * len(scheme) / len(names))
                found |= {n: self._parts[n].observed > limit for n, limit in zip(scheme, limits, strict=True)}
        return found


def _deals(parts: list[_Part], permutations: int, rng: np.random.Generator) -> Iterator[list[np.ndarray]]:
    """Yield blocks of the largest statistic of every curve, the observed one first."""
    yield [np.array([part.observed.max(initial=0.0)]) for part in parts]
    rows = int(np.clip(BLOCK // max(len(parts[0].counted), 1), 8, 256))
    for start in range(0, permutations, rows):
        count = min(rows, permutations - start)
        deals: dict[bytes, np.ndarray] = {}
        for part in parts:
            if part.key not in deals:
                deals[part.key] = rng.permuted(np.tile(part.members, (count, 1)), axis=1)
        yield [part.statistic(deals[part.key]).max((1, 2), initial=0.0) for part in parts]


class _Part:
    """One curve: standardised values of the points that count, and the statistic of any assignment of groups."""

    def __init__(self, curve: PointCurve, codes: np.ndarray, contrasts: np.ndarray) -> None:
        self.curve, self.groups = curve, contrasts.shape[1]
        self.counted = np.arange(len(codes)) if curve.where is None else np.flatnonzero(curve.where)
        self.key = b"" if curve.where is None else np.packbits(curve.where).tobytes()
        self.members = codes[self.counted].astype(np.int16)
        values = curve.values[:, self.counted]
        counts = np.bincount(self.members, minlength=self.groups)
        used = np.array([bool((counts[row != 0] > 0).all()) for row in contrasts])
        centred = (values - values.mean(1, keepdims=True, dtype=np.float64)).astype(np.float32)
        floor = ROUNDING * float(np.abs(values).max(initial=0.0)) + np.finfo(np.float32).tiny
        spread = np.maximum(centred.std(1, dtype=np.float64), floor)
        self._points = np.ascontiguousarray((centred / spread[:, None]).T.astype(np.float32))
        share = np.divide(1.0, counts, out=np.zeros(self.groups), where=counts > 0)
        self._share = share.astype(np.float32)[:, None]
        self._contrasts = contrasts[used].astype(np.float32)
        self._scale = (1.0 / np.sqrt(contrasts[used] ** 2 @ share)).astype(np.float32)[:, None]
        self.observed = np.full((curve.looks, len(contrasts)), -np.inf)
        if used.any():
            self.observed[:, used] = self.statistic(self.members[None])[0].T

    def statistic(self, labels: np.ndarray) -> np.ndarray:
        """(deals, contrasts, looks) of labels (deals, points)."""
        sums = [(labels == group).astype(np.float32) @ self._points for group in range(self.groups - 1)]
        # Values are centred, so the sums of all groups add up to zero.
        means = np.stack([*sums, -np.sum(sums, axis=0)], 1) * self._share
        return np.asarray(np.abs(self._contrasts @ means) * self._scale)
