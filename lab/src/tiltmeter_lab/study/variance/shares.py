"""shares: how much of the variance of a number each factor explains, each pair, and chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import xarray as xr

from tiltmeter.shown_text import NotebookText, percent
from tiltmeter_lab.study.variance.design import Design, make_design
from tiltmeter_lab.study.variance.variances import (
    Variances,
    estimate,
    moments,
    paired_often,
    permute,
    resample,
    total_effects,
)

#: Names of the two parts that are no factors.
REST, SEED = "rest", "seed"


@dataclass(frozen=True)
class Share:
    """One part of the variance, with its interval.

    For a factor, `total` is the share that would go away if it were fixed, `even` its own share and half of that of
    each of its pairs (its Shapley effect up to pairs), `null` the share that a factor without effect stays below with
    probability `level`, and `p` how often such a factor would get as much; these two are NaN where most runs have no
    other that differs in this factor alone, as in a small fraction of a large grid. For pairs, the rest and chance all
    four are NaN.
    """

    term: str
    share: float
    low: float
    high: float
    total: float = np.nan
    even: float = np.nan
    null: float = np.nan
    p: float = np.nan


@dataclass(frozen=True)
class Shares(NotebookText):
    """Shares of variance over a grid, largest first.

    >>> import tiltmeter as tm, xarray as xr
    >>> import tiltmeter_lab as lab
    >>> noise, width = np.random.default_rng(0).normal(size=(3, 2, 6)), np.array([-1, 0, 1])[:, None, None]
    >>> grid = xr.DataArray(2 * width + noise, dims=("width", "depth", "seed"), name="gap")
    >>> print(lab.shares(grid, ranks=False))
    Of the variance of gap: width 80 % (73 % to 86 %), seed 17 % (11 % to 23 %), width x depth 2 % (0 % to 7 %).

    Args:
        response: Name of the number whose variance is split.
        rows: Parts, the largest first.
        level: Coverage of the intervals.
        ranks: Whether the shares are those of the ranks.
        cells: Cells of the grid.
        seen: Cells that have finished.
        notes: Remarks.
        draws: Resampled shares by part; not compared.
    """

    response: str
    rows: tuple[Share, ...]
    level: float
    ranks: bool
    cells: int
    seen: int
    notes: tuple[str, ...] = ()
    draws: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    def __getitem__(self, term: str) -> Share:
        for row in self.rows:
            if row.term == term:
                return row
        raise KeyError(f"No part {term!r}. There are: {', '.join(row.term for row in self.rows)}.")

    def __str__(self) -> str:
        parts = [
            f"{row.term} {percent(row.share, 0)} ({percent(row.low, 0)} to {percent(row.high, 0)})"
            for row in self.rows
            if row.share >= 0.01
        ]
        what = "the ranks of " if self.ranks else ""
        said = f"Of the variance of {what}{self.response}: {', '.join(parts)}."
        return " ".join([said, *self.notes])

    def grouped(self, groups: Mapping[str, Sequence[str]]) -> tuple[Share, ...]:
        """The same by groups of factors; a pair between two groups counts half for each."""
        owner = {factor: group for group, factors in groups.items() for factor in factors}
        sums: dict[str, np.ndarray] = {group: np.zeros(1) for group in groups}
        for term, drawn in self.draws.items():
            factors = [name for name in term.split(" x ") if name in owner]
            for name in factors:
                sums[owner[name]] = sums[owner[name]] + drawn / len(term.split(" x "))
        tail = (1 - self.level) / 2
        found = []
        for group, drawn in sums.items():
            low, high = np.clip(np.quantile(drawn[1:] if len(drawn) > 1 else drawn, [tail, 1 - tail]), 0, 1)
            found.append(Share(group, float(np.clip(drawn[0], 0, 1)), float(low), float(high)))
        return (*found, *(self[name] for name in (REST, SEED)))

    def by_groups(self, groups: Mapping[str, Sequence[str]], luck: str = SEED) -> Shares:
        """`grouped` as Shares, to be drawn; without groups that do not vary. `luck` names the part of chance.

        >>> noise = np.random.default_rng(0).normal(size=(3, 2, 6))
        >>> found = shares(xr.DataArray(noise, dims=("width", "lr", "seed")), draws=20, permutations=0)
        >>> [row.term for row in found.by_groups({"architecture": ["width"], "data": ["share"]}, "luck").rows]
        ['architecture', 'rest', 'luck']
        """
        varied = {factor for term in self.draws for factor in term.split(" x ")}
        rows = [row for row in self.grouped(groups) if row.term not in groups or varied & set(groups[row.term])]
        named = tuple(replace(row, term=luck) if row.term == SEED else row for row in rows)
        return replace(self, rows=named, draws={})


def shares(
    table: xr.DataArray | xr.Dataset,
    factors: Sequence[str] | None = None,
    *,
    ranks: bool = True,
    shared_seeds: bool = False,
    level: float = 0.9,
    draws: int = 400,
    permutations: int = 199,
    seed: int = 0,
) -> Shares:
    """How much of the variance of a response each factor explains, each pair of factors, and chance.

    >>> noise = np.random.default_rng(0).normal(size=(3, 2, 6))
    >>> width = np.array([-1.0, 0.0, 1.0])[:, None, None]
    >>> grid = xr.DataArray(2 * width + noise, dims=("width", "depth", "seed"), name="gap")
    >>> found = shares(grid, ranks=False)
    >>> [row.term for row in found.rows][:2], found["depth"].p > 0.05
    (['width', 'seed'], True)

    The table has one dimension for each factor and `seed`; dimensions that `factors` leaves out count as chance. The
    measure is uniform over the grid, not over the cells that finished. By default the response is replaced by its
    ranks, so that no single wild run decides: the shares are then those of the ranks. Main effects and pairs are fitted
    by least squares with orthonormal contrasts (exact on a complete grid, each term adjusted for all others elsewhere),
    and the part of every squared effect that is only noise is subtracted. Intervals resample the deviations of runs
    from their cell; give them at least five seeds.

    A large share does not mean a large effect: it says how much of *this* grid's variance goes with the factor, and
    another choice of levels changes it. Failed cells are left out, never filled in.

    Args:
        table: Response with one dimension per factor and `seed`, as `Study.table` returns it.
        factors: Dimensions that are factors; the others count as chance. None: all.
        ranks: Whether the response is replaced by its ranks, so that no single wild run decides.
        shared_seeds: Whether one seed is the same chance in every cell.
        level: Coverage of the intervals.
        draws: Resampled tables for the intervals.
        permutations: Permuted tables for the null values.
        seed: Seed of both.
    """
    array = _response(table)
    names = [str(dim) for dim in array.dims if dim != SEED] if factors is None else list(factors)
    grid, sizes, constant = _grid(array, names)
    generator = np.random.default_rng(seed)
    if not np.isfinite(grid).any() or np.nanmin(grid) == np.nanmax(grid):
        raise ValueError(f"`{array.name}` does not vary over the table: there is nothing to explain.")
    if ranks:
        grid = _ranked(grid)
    seen = np.isfinite(grid).any(-1)
    values = grid[seen]
    counts = np.isfinite(values).sum(-1)
    if (counts - 1).sum() < 1:
        raise ValueError("`shares` needs at least two seeds in some cell, to tell chance from the factors.")
    design = make_design(sizes, seen)
    means, noise, counts = moments(values[None])
    found = estimate(design, means, noise, counts)
    again = resample(design, values, found, draws, shared_seeds, generator)
    other_means, other_noise, _ = moments(again)
    other = estimate(design, other_means, other_noise, counts)
    main = found.terms[0, : len(sizes)] / found.whole[0]
    null, p = _null(design, grid, main, permutations, level, shared_seeds, generator)
    totals = total_effects(design, means, counts, found)[0] / found.whole[0]
    rows = _rows(design, found, other, level, totals, null, p)
    parts = {term: np.concatenate([[a], b]) for term, a, b in _parts(design, found, other)}
    notes = _notes(array, grid, design, constant)
    ordered = tuple(sorted(rows, key=lambda row: -row.share))
    return Shares(str(array.name or "the response"), ordered, level, ranks, design.cells, int(seen.sum()), notes, parts)


def _response(table: xr.DataArray | xr.Dataset) -> xr.DataArray:
    if isinstance(table, xr.Dataset):
        if len(table.data_vars) != 1:
            listed = ", ".join(map(str, table.data_vars)) or "none"
            raise ValueError(f"`shares` explains one response: choose it, as in table[name]. There are: {listed}.")
        return next(iter(table.data_vars.values()))
    if not isinstance(table, xr.DataArray):
        raise TypeError(f"`table` should be an xarray.DataArray. Found {type(table).__name__}.")
    return table


def _grid(array: xr.DataArray, names: list[str]) -> tuple[np.ndarray, dict[str, int], list[str]]:
    """Values (factors..., seeds), the factors that vary, and those that do not."""
    for name in names:
        if name not in array.dims or name == SEED:
            listed = ", ".join(str(dim) for dim in array.dims if dim != SEED)
            raise KeyError(f"`factors` should name dimensions of the table: {listed}. Found {name!r}.")
    varying = {name: array.sizes[name] for name in names if array.sizes[name] > 1}
    if not varying:
        raise ValueError("`shares` needs a factor with at least two levels.")
    chance = [dim for dim in array.dims if dim not in varying]
    values = array.transpose(*varying, *chance).values.astype(float)
    return values.reshape(*varying.values(), -1), varying, [name for name in names if name not in varying]


def _ranked(grid: np.ndarray) -> np.ndarray:
    from scipy.stats import rankdata

    there = np.isfinite(grid)
    found = np.full(grid.shape, np.nan)
    found[there] = rankdata(grid[there])
    return found


def _null(
    design: Design,
    grid: np.ndarray,
    main: np.ndarray,
    permutations: int,
    level: float,
    shared: bool,
    generator: np.random.Generator,
) -> tuple[list[float], list[float]]:
    """For each factor, the share that one without effect stays below, and how often it gets as much as this one."""
    null, p = [], []
    for axis in range(len(design.sizes)):
        if not permutations or not paired_often(grid, axis):
            null.append(np.nan)
            p.append(np.nan)
            continue
        values = np.stack([permute(grid, axis, shared, generator)[design.seen] for _ in range(permutations)])
        counts = np.isfinite(values).sum(-1)
        drawn = []
        for one, count in zip(values, counts, strict=True):
            # Where cells have different numbers of runs they stay different, so every draw has its own counts.
            means, noise, _ = moments(one[None])
            found = estimate(design, means, noise, count)
            drawn.append(found.terms[0, axis] / found.whole[0])
        null.append(float(np.clip(np.quantile(drawn, level), 0, 1)))
        p.append((1 + int(np.sum(np.asarray(drawn) >= main[axis] - 1e-12))) / (1 + permutations))
    return null, p


def _parts(design: Design, found: Variances, other: Variances) -> list[tuple[str, float, np.ndarray]]:
    """Every part with its share and the draws of it."""
    named = [" x ".join(term) for term in design.terms]
    parts = [
        (name, float(found.terms[0, place] / found.whole[0]), other.terms[:, place] / other.whole)
        for place, name in enumerate(named)
    ]
    parts.append((REST, float(found.rest[0] / found.whole[0]), other.rest / other.whole))
    parts.append((SEED, float(found.noise[0] / found.whole[0]), other.noise / other.whole))
    return parts


def _rows(
    design: Design,
    found: Variances,
    other: Variances,
    level: float,
    totals: np.ndarray,
    null: list[float],
    p: list[float],
) -> list[Share]:
    tail = (1 - level) / 2
    parts = _parts(design, found, other)
    share = {name: value for name, value, _ in parts}
    rows = []
    for place, (name, value, drawn) in enumerate(parts):
        low, high = np.clip(np.quantile(drawn, [tail, 1 - tail]), 0, 1)
        row = Share(name, float(np.clip(value, 0, 1)), float(low), float(high))
        if place < len(design.sizes):
            even = value + sum(share[" x ".join(term)] / 2 for term in design.terms if len(term) > 1 and name in term)
            extra = (float(np.clip(totals[place], 0, 1)), float(np.clip(even, 0, 1)), null[place], p[place])
            row = Share(row.term, row.share, row.low, row.high, *extra)
        rows.append(row)
    return rows


def _notes(array: xr.DataArray, grid: np.ndarray, design: Design, constant: list[str]) -> tuple[str, ...]:
    notes = []
    if constant:
        notes.append(f"{', '.join(constant)} had one level and cannot explain anything.")
    if design.dropped:
        pairs = ", ".join(" x ".join(pair) for pair in design.dropped)
        notes.append(f"The cells do not tell {pairs}: it is part of the rest.")
    missing = ~np.isfinite(grid)
    if missing.any():
        worst, rate = "", -1.0
        for axis, name in enumerate(design.sizes):
            others = tuple(one for one in range(grid.ndim) if one != axis)
            rates = missing.mean(others)
            if rates.max() > rate:
                level = array.coords[name].values[rates.argmax()] if name in array.coords else rates.argmax()
                worst, rate = f"{name} = {level}", float(rates.max())
        notes.append(f"{percent(missing.mean(), 0)} of the runs are missing, most for {worst} ({percent(rate, 0)}).")
    return tuple(notes)
