"""Bands of one run: limits of all differences at all evaluations in all chosen curves, at one error rate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tiltmeter.arguments import checked_share
from tiltmeter.leaders.points import FEWEST, PointCurve, check_codes
from tiltmeter.threads import one_blas_thread


@dataclass(frozen=True, eq=False)
class Band:
    """Gaps and their limits, each of shape (evaluations, contrasts); NaN where there is no test.

    >>> band = Band(np.array([[0.5], [0.1]]), np.array([[0.2], [-0.2]]), np.array([[0.8], [0.4]]))
    >>> band.shown.ravel().tolist()
    [1, 0]
    """

    gap: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    #: Values of both sides of every contrast, (evaluations, contrasts, 2), and the points behind them, (contrasts, 2).
    sides: np.ndarray | None = None
    points: np.ndarray | None = None

    @property
    def shown(self) -> np.ndarray:
        """The sign of the difference where it is shown, else 0."""
        return (self.lower > 0).astype(np.int8) - (self.upper < 0).astype(np.int8)

    def gated(self, passed: np.ndarray) -> Band:
        """Return the same band, widened to include zero wherever the gate did not pass."""
        lower = np.where(passed, self.lower, np.minimum(self.lower, 0.0))
        upper = np.where(passed, self.upper, np.maximum(self.upper, 0.0))
        return replace(self, lower=lower, upper=upper)


def balanced(columns: np.ndarray, level: float) -> np.ndarray:
    """Return critical values of the columns of (draws, statistics): a share of at most `level` of rows exceeds any.

    >>> rng = np.random.default_rng(0)
    >>> draws = rng.normal(size=(1000, 2)) * [1.0, 10.0]
    >>> limits = balanced(draws, 0.05)
    >>> bool((draws > limits).any(1).mean() <= 0.05), (limits / [1.0, 10.0]).round().tolist()
    (True, [2.0, 2.0])

    Each statistic is replaced by its rank among the draws, so that statistics of different size, such as those of a
    loss and a rate, are exceeded equally often (Beran, 1988). If the first row is the observation and the rows are
    exchangeable, the probability that it exceeds any critical value is at most `level`.
    """
    checked_share("level", level)
    count = len(columns)
    below = np.empty(columns.shape)
    for column, share in zip(columns.T, below.T, strict=True):
        share[:] = np.searchsorted(np.sort(column), column) / count
    limit = np.quantile(below.max(1), 1.0 - level, method="higher")
    return np.asarray(np.where(below <= limit, columns, -np.inf).max(0))


#: Numbers held in memory at once. The size of a block depends on the points, not on the evaluations.
BLOCK = 2**22
#: From this many points on, points are drawn in bags, and groups are permuted in blocks.
MANY = 2**17
#: Bags of a group, at most, and blocks of all points.
BAGS, BLOCKS = 2**14, 128
#: Up to so many groups are summed by products of dense matrices.
DENSE = 8


def bootstrap_weights(sizes: Sequence[int], draws: int, rng: np.random.Generator) -> Iterator[list[np.ndarray]]:
    """Blocks of draws; in each, one array (draws, points) per group, every row summing to the group's size.

    >>> blocks = list(bootstrap_weights([3, 5], 10, np.random.default_rng(0)))
    >>> [w.sum(1).tolist() for w in blocks[0]] == [[3.0] * 10, [5.0] * 10]
    True

    The same weights are used for every evaluation and curve. This keeps the correlation between looks at the same
    points, which makes a band over all evaluations narrow.
    """
    rows = int(np.clip(BLOCK // max(sum(sizes), 1), 8, 256))
    for start in range(0, draws, rows):
        yield [_drawn(size, min(rows, draws - start), rng) for size in sizes]


def in_bags(columns: np.ndarray) -> np.ndarray:
    """The sums of the rows of `columns` in at most 2^14 bags of nearly equal size; rows should be in random order.

    >>> in_bags(np.ones((3 * BAGS, 2))).shape, in_bags(np.ones((3 * BAGS, 2))).max()
    ((16384, 2), np.float64(3.0))

    Drawing bags instead of points keeps the mean of a sum, and in expectation over the order also its variance and
    skewness. The standard errors of m bags scatter by (2 m)^(-1/2), 0.6 %: less than critical values of 1,999 draws.
    """
    if len(columns) <= BAGS:
        return columns
    return np.add.reduceat(columns, np.arange(BAGS) * len(columns) // BAGS)


def members_of(codes: np.ndarray, groups: int, rng: np.random.Generator) -> list[np.ndarray]:
    """The places of the points of every group; those of many points in random order, for `in_bags`."""
    places = rng.permutation(len(codes)) if len(codes) >= MANY else np.arange(len(codes))
    return [places[codes[places] == group] for group in range(groups)]


def _drawn(size: int, count: int, rng: np.random.Generator) -> np.ndarray:
    if size == 0:
        return np.zeros((count, 0), dtype=np.float32)
    places = rng.integers(0, size, (count, size), dtype=np.int32)
    places += (np.arange(count, dtype=np.int32) * size)[:, None]
    return np.bincount(places.ravel(), minlength=count * size).reshape(count, size).astype(np.float32)


def clopper_pearson(hits: np.ndarray, counts: np.ndarray, tail: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return exact confidence limits of a share, each wrong with probability at most `tail` (Clopper-Pearson, 1934).

    >>> low, high = clopper_pearson(np.array([0, 5]), np.array([10, 10]), 0.025)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.187], [0.308, 0.813])
    """
    from scipy.special import betaincinv

    hits, counts, tail = np.broadcast_arrays(*(np.asarray(one, dtype=float) for one in (hits, counts, tail)))
    low, high = np.zeros(hits.shape), np.ones(hits.shape)
    some, not_all = hits > 0, hits < counts
    low[some] = betaincinv(hits[some], counts[some] - hits[some] + 1.0, tail[some])
    high[not_all] = betaincinv(hits[not_all] + 1.0, counts[not_all] - hits[not_all], 1.0 - tail[not_all])
    return low, high


def limits_of_rates(sides: np.ndarray, counts: np.ndarray, tail: float) -> tuple[np.ndarray, np.ndarray]:
    """Return limits of the difference of two rates, `sides` (..., evaluations, 2) of so many points, `counts` (..., 2).

    >>> low, high = limits_of_rates(np.array([[[0.5, 0.2]]]), np.array([[100, 100]]), 0.025)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([[0.163]], [[0.425]])

    Each rate has exact limits, wrong with probability at most `tail` (Clopper-Pearson). The distance of each limit from
    its rate is used as a standard error, separately for each side (MOVER; Zou and Donner, 2008).
    """
    number = np.maximum(counts, 1.0)[..., None, :]
    # For single decisions the hits are whole numbers up to rounding, including none and all.
    hits = sides * number
    whole = np.rint(hits)
    low, high = clopper_pearson(np.where(np.abs(hits - whole) < 1e-6 * number, whole, hits), number, tail)
    below, above = (sides - low) ** 2, (high - sides) ** 2
    gap = sides[..., 0] - sides[..., 1]
    return gap - np.sqrt(below[..., 0] + above[..., 1]), gap + np.sqrt(above[..., 0] + below[..., 1])


#: A spread below this share of the largest value is rounding.
ROUNDING = 1e-7


class PermutationGate:
    """Tests whether differences exceed those of random groups, for any set of the curves.

    Groups are permuted among the points that count: for a true-positive rate, among the positives. The statistic is the
    difference over the spread of all points; its largest value over evaluations and contrasts is compared with that of
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
        parts = list(self._parts.values())
        self._columns = dict(zip(self._parts, _largest_by_chance(parts, permutations, rng), strict=True))

    def passed(self, names: Sequence[str], level: float) -> dict[str, np.ndarray]:
        """Return, for each of these curves, where the difference passes, as (evaluations, contrasts)."""
        found: dict[str, np.ndarray] = {}
        for some in (False, True):
            scheme = [name for name in names if (self._parts[name].curve.where is not None) == some]
            if scheme:
                columns = np.stack([self._columns[name] for name in scheme], 1)
                limits = balanced(columns, level * len(scheme) / len(names))
                found |= {n: self._parts[n].observed > limit for n, limit in zip(scheme, limits, strict=True)}
        return found


def _largest_by_chance(parts: list[_Part], permutations: int, rng: np.random.Generator) -> list[np.ndarray]:
    """The largest statistic of every curve under random groups, the observed one first.

    Many points are brought into a random order once, and then only whole blocks of groups are permuted. These
    permutations are a group, too, so the test is as exact as with all permutations. Sums over every pair of a block of
    groups and a block of values are computed once, so a permutation costs nothing.
    """
    found = [[np.array([part.observed.max(initial=0.0)])] for part in parts]
    rows = int(np.clip(BLOCK // max(len(parts[0].counted), 1), 8, 256))
    orders: dict[bytes, np.ndarray] = {}
    for part in parts:
        if part.many:
            if part.key not in orders:
                orders[part.key] = rng.permutation(len(part.counted))
            part.prepare_blocks(orders[part.key])
    for start in range(0, permutations, rows):
        deals: dict[bytes, np.ndarray] = {}
        for part, kept in zip(parts, found, strict=True):
            if part.key not in deals:
                dealt = np.arange(BLOCKS) if part.many else part.members
                deals[part.key] = rng.permuted(np.tile(dealt, (min(rows, permutations - start), 1)), axis=1)
            kept.append(part.by_chance(deals[part.key]).max((1, 2), initial=0.0))
    return [np.concatenate(kept) for kept in found]


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
        self.observed = np.full((curve.evaluations, len(contrasts)), -np.inf)
        if used.any():
            self.observed[:, used] = self._statistic(self._sums(self.members[None]))[0].T

    @property
    def many(self) -> bool:
        return len(self.counted) >= MANY

    def prepare_blocks(self, order: np.ndarray) -> None:
        """Sums of the points of a group for every block of groups and block of values, in this order of points.

        Place k belongs to the block k modulo 128; the few points at the end that fill no row keep their group.
        """
        size = len(order) // BLOCKS
        inside, rest = np.split(order, [size * BLOCKS])
        labels = np.ascontiguousarray(self.members[inside].reshape(size, BLOCKS).T)
        points = self._points[inside].reshape(size, -1)
        self._blocks = np.empty((BLOCKS, BLOCKS, self.groups - 1, self.curve.evaluations), dtype=np.float32)
        for group in range(self.groups - 1):
            left = _is(self.members[rest], group) @ self._points[rest] / BLOCKS
            self._blocks[:, :, group] = (_is(labels, group) @ points).reshape(BLOCKS, BLOCKS, -1) + left

    def by_chance(self, deals: np.ndarray) -> np.ndarray:
        """(deals, contrasts, evaluations) of labels (deals, points), or of orders of blocks (deals, blocks)."""
        if not self.many:
            return self._statistic(self._sums(deals))
        return self._statistic(self._blocks[deals, np.arange(BLOCKS)].sum(1))

    def _sums(self, labels: np.ndarray) -> np.ndarray:
        """(deals, groups but the last, evaluations): the sums of the points of each group."""
        if self.groups <= DENSE:
            return np.stack([_is(labels, group) @ self._points for group in range(self.groups - 1)], 1)
        from scipy.sparse import csc_array

        deals, points = labels.shape
        rows = (labels + self.groups * np.arange(deals, dtype=np.int32)[:, None]).T.ravel()
        starts = deals * np.arange(points + 1, dtype=np.int32)
        chosen = csc_array((np.ones(len(rows), np.float32), rows, starts), (deals * self.groups, points))
        return np.asarray((chosen @ self._points).reshape(deals, self.groups, -1)[:, :-1])

    def _statistic(self, sums: np.ndarray) -> np.ndarray:
        # Values are centred, so the sums of all groups add up to zero.
        means = np.concatenate([sums, -sums.sum(1, keepdims=True)], 1) * self._share
        return np.asarray(np.abs(self._contrasts @ means) * self._scale)


def _is(labels: np.ndarray, group: int) -> np.ndarray:
    return np.asarray(labels == group, dtype=np.float32)


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
    for each. The bootstrap resamples the points of each group, in the same way for all evaluations and curves. A
    real-valued curve gets bootstrap-t limits, with a separate critical value for each tail. A rate gets the
    Clopper-Pearson limits of its groups at the critical value of the largest standardised difference. Critical values
    are balanced over curves. Where the permutation gate does not pass, the band is widened to include zero. The result
    depends only on the points and `seed`.

    The limits are for the networks of this run and new points from the same population. They say nothing about other
    seeds: see `two_way`. The cost is about draws x points x evaluations x curves multiplications, as matrix products.
    """
    limits = Limits(curves, codes, contrasts, draws, permutations, seed)
    return limits.of([curve.name for curve in curves], level)


class Limits:
    """Bands for sets of curves that are tested together, each set with its own error rate, all from the same draws.

    Testing one curve alone and five together costs as much as testing the five.
    """

    def __init__(
        self,
        curves: Sequence[PointCurve],
        codes: np.ndarray,
        contrasts: np.ndarray | Mapping[str, np.ndarray],
        draws: int = DRAWS,
        permutations: int = PERMUTATIONS,
        seed: int = 0,
    ) -> None:
        self._curves, self._codes = list(curves), codes
        self._contrasts = {c.name: contrasts[c.name] if isinstance(contrasts, Mapping) else contrasts for c in curves}
        groups = next(iter(self._contrasts.values())).shape[1] if self._contrasts else 0
        check_codes(self._curves, codes, groups)
        self._permutations, self._seed = permutations, seed
        with one_blas_thread():
            self._bootstrap = Bootstrap(self._curves, codes, self._contrasts, draws, seed)

    def of(self, names: Sequence[str], level: float) -> dict[str, Band]:
        """The bands of these curves; all of them hold together with probability 1 - `level`."""
        found = self._before_the_gate(names, level)
        if not any(band.shown.any() for band in found.values()):
            return found
        passed = self._gate.passed(names, level)
        return {name: band.gated(passed[name]) for name, band in found.items()}

    def _before_the_gate(self, names: Sequence[str], level: float) -> dict[str, Band]:
        return self._bootstrap.bands(names, level)

    @cached_property
    def _gate(self) -> PermutationGate:
        rng = np.random.default_rng([self._seed, 2])
        with one_blas_thread():
            return PermutationGate(self._curves, self._codes, self._contrasts, self._permutations, rng)


class Bootstrap:
    """The largest deviations of every curve in many draws of the points, for bands of any set of the curves."""

    def __init__(
        self, curves: list[PointCurve], codes: np.ndarray, contrasts: Mapping[str, np.ndarray], draws: int, seed: int
    ) -> None:
        self._parts = {curve.name: _CurvePart(curve, codes, contrasts[curve.name]) for curve in curves}
        parts = list(self._parts.values())
        groups = next(iter(contrasts.values())).shape[1]
        members = members_of(codes, groups, np.random.default_rng([seed, 3]))
        wanted = in_bags if len(codes) >= MANY else np.asarray
        stacked = [np.concatenate([wanted(part.columns(own)) for part in parts], 1) for own in members]
        # Groups are drawn in the order of their first points, so that their names and order do not matter.
        order = sorted(range(groups), key=lambda group: members[group].min(initial=len(codes)))
        sups: list[list[np.ndarray]] = [[] for _ in parts]
        rng = np.random.default_rng([seed, 1])
        for block in bootstrap_weights([len(stacked[group]) for group in order], draws, rng):
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


class _CurvePart:
    """One curve: the matrix that is multiplied with the weights, and the limits computed from the product."""

    def __init__(self, curve: PointCurve, codes: np.ndarray, contrasts: np.ndarray) -> None:
        self.curve = curve
        groups = contrasts.shape[1]
        self.counts = curve.counts(codes, groups)
        self.side_counts = np.stack([(contrasts > 0) @ self.counts, (contrasts < 0) @ self.counts], 1)
        self.used = (self.side_counts >= FEWEST).all(1)
        self.contrasts = contrasts[self.used]
        self.total = len(contrasts)
        self.width = curve.evaluations * (1 if curve.rate else 2) + (curve.where is not None)
        where = np.ones(len(codes), dtype=bool) if curve.where is None else curve.where
        self.where = where
        members = np.where(where, codes, groups)
        values = curve.values
        self.mean = np.zeros((groups, curve.evaluations))
        self.variance = np.zeros((groups, curve.evaluations))
        for group in range(groups):
            own = values[:, members == group]
            if own.shape[1]:
                self.mean[group] = own.mean(1, dtype=np.float64)
            if own.shape[1] > 1:
                self.variance[group] = own.var(1, dtype=np.float64, ddof=1) / own.shape[1]
        above, below = np.maximum(self.contrasts, 0.0), np.maximum(-self.contrasts, 0.0)
        self.sides = np.stack([above @ self.mean, below @ self.mean], 2)  # (contrasts, evaluations, 2)
        variance = self.contrasts**2 @ self.variance
        if curve.rate:
            # Shares of several seeds are judged as single decisions are. They vary less from point to point, but where
            # few points are hard the points drawn may hold none of these, and their scatter would not tell. The groups
            # of one side are judged as one: each may be too small alone.
            counts = self.side_counts[self.used][:, None].astype(float)
            middle = (self.sides * counts + 2.0) / (counts + 4.0)
            variance = (middle * (1.0 - middle) / (counts + 4.0)).sum(2)
        self.codes = codes
        self.floor = ROUNDING * float(np.abs(values).max(initial=0.0)) + np.finfo(np.float32).tiny
        self.error = np.maximum(np.sqrt(variance), self.floor)

    def columns(self, own: np.ndarray) -> np.ndarray:
        """(points of a group, columns): centred values at every evaluation, their squares, and whether a point
        counts."""
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
        evaluations = self.curve.evaluations
        shape = (len(products[0]), len(products), evaluations)
        away, spread = np.empty(shape, dtype=np.float32), np.empty(shape, dtype=np.float32)
        for group, product in enumerate(products):
            drawn = product[:, -1:] if self.curve.where is not None else self.counts[group]
            away[:, group] = product[:, :evaluations] / np.maximum(drawn, 1)
            if not self.curve.rate:
                second = product[:, evaluations : 2 * evaluations] / np.maximum(drawn, 1)
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
        limits = np.maximum(limits, -ndtri(level / 2.0))  # never narrower than at one evaluation
        if self.curve.rate:
            lower, upper = limits_of_rates(self.sides, self.side_counts[self.used], float(ndtr(-limits[0])))
        else:
            lower, upper = gap - limits[0] * self.error, gap + limits[1] * self.error
        wide = [np.full((self.curve.evaluations, self.total), np.nan) for _ in range(3)]
        for array, part in zip(wide, (gap, lower, upper), strict=True):
            array[:, self.used] = part.T
        sides = np.full((self.curve.evaluations, self.total, 2), np.nan)
        sides[:, self.used] = self.sides.transpose(1, 0, 2)
        gap, lower, upper = wide
        return Band(gap, lower, upper, sides, self.side_counts)
