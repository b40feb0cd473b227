"""Variances of terms, of the rest and of chance, from the means of cells, freed of noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter_lab.study.variance.design import Design


def permute(values: np.ndarray, axis: int, shared: bool, generator: np.random.Generator) -> np.ndarray:
    """Runs of a grid (factors..., seeds) with one factor shuffled wherever all other factors are equal.

    >>> grid = np.arange(12.0).reshape(2, 3, 2)
    >>> shuffled = permute(grid, 0, False, np.random.default_rng(0))
    >>> sorted(shuffled[:, 1].ravel()) == sorted(grid[:, 1].ravel())
    True

    If the factor has no effect, runs that differ in nothing else are exchangeable, whatever the other factors do: the
    shuffled grid is as likely as the one seen, so a test by it keeps its level exactly. With shared seeds, runs are
    shuffled among those of the same seed. Missing runs stay where they are.
    """
    moved = np.moveaxis(values, axis, -2)  # others..., factor, seed
    if shared:
        moved = np.swapaxes(moved, -1, -2)
    rows = moved.reshape(-1, moved.shape[-1] if shared else moved.shape[-1] * moved.shape[-2]).copy()
    # Sorting random keys shuffles every row; missing runs get keys that sort them to the end, in both places.
    there = np.isfinite(rows)
    keys = np.where(there, generator.random(rows.shape), 2.0)
    drawn = np.take_along_axis(rows, np.argsort(keys, -1), -1)
    target = np.argsort(~there, -1, kind="stable")
    np.put_along_axis(rows, target, drawn, -1)
    found = rows.reshape(moved.shape)
    return np.moveaxis(np.swapaxes(found, -1, -2) if shared else found, -2, axis)


def paired_often(values: np.ndarray, axis: int) -> bool:
    """Whether most runs have another that differs in this factor alone: without such pairs, shuffling changes nothing.

    >>> paired_often(np.ones((2, 3, 1)), 0), paired_often(np.array([[[1.0], [np.nan]], [[np.nan], [1.0]]]), 0)
    (True, False)
    """
    there = np.moveaxis(np.isfinite(values).any(-1), axis, -1)
    several = there.sum(-1) > 1
    return bool(there[several].sum() >= 0.5 * there.sum())


@dataclass(frozen=True)
class Variances:
    """Over draws (first axis). `raw` are the squared coefficients before the noise was subtracted."""

    terms: np.ndarray
    raw: np.ndarray
    rest: np.ndarray
    noise: np.ndarray

    @property
    def whole(self) -> np.ndarray:
        """All of it together."""
        return np.asarray(self.terms.sum(-1) + self.rest + self.noise)


def estimate(design: Design, means: np.ndarray, noise: np.ndarray, counts: np.ndarray) -> Variances:
    """Of means of cells (draws, cells), the variance of one run (draws,) and the number of runs of each cell.

    A squared coefficient is on average too large by its own error, noise * sum(solve^2 / counts): that is subtracted,
    so that a factor without effect gets 0 on average. What is left over is the rest: interactions of three and more
    factors, and pairs that the cells seen could not tell.
    """
    coefficients = means @ design.solve.T
    error = (design.solve**2) @ (1.0 / counts)
    raw = np.stack([(coefficients[:, part] ** 2).sum(-1) for part in design.slices], -1)
    terms = raw - noise[:, None] * np.array([error[part].sum() for part in design.slices])
    free = means.shape[1] - design.columns.shape[1]
    rest = np.zeros(len(means))
    if free > 0:
        residual = means - coefficients @ design.columns.T
        square = (residual**2).sum(-1) - noise * (design.leftover / counts).sum()
        # Spread evenly over the cells that were not seen too.
        rest = square / free * (design.cells - design.columns.shape[1]) / design.cells
    return Variances(terms, raw, rest, noise)


def moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means (draws, cells), the pooled variance of one run (draws,) and counts (cells,) of runs (draws, cells, seeds).

    Runs that are missing are NaN, the same ones in every draw.
    """
    there = np.isfinite(values[0])
    counts = there.sum(-1)
    means = np.where(there, values, 0.0).sum(-1) / counts
    squares = np.where(there, (values - means[..., None]) ** 2, 0.0).sum((-1, -2))
    return means, squares / (counts - 1).sum(), counts


def total_effects(design: Design, means: np.ndarray, counts: np.ndarray, found: Variances) -> np.ndarray:
    """The variance that goes away if a factor is fixed, for each factor (draws, factors).

    Exact on a complete grid, with interactions of every order; else the factor and its pairs.
    """
    totals = []
    for axis, name in enumerate(design.sizes):
        if design.complete:
            grid = means.reshape(len(means), *design.sizes.values())
            within = ((grid - grid.mean(axis + 1, keepdims=True)) ** 2).reshape(len(means), -1).mean(-1)
            totals.append(within - found.noise * (1 - 1 / design.sizes[name]) * (1.0 / counts).mean())
        else:
            totals.append(sum(found.terms[:, place] for place, term in enumerate(design.terms) if name in term))
    return np.stack(totals, -1)


def resample(
    design: Design, values: np.ndarray, found: Variances, draws: int, shared: bool, generator: np.random.Generator
) -> np.ndarray:
    """Runs (draws, cells, seeds) around means whose variances are those estimated, not those inflated by noise.

    Deviations from the mean of a cell are widened by sqrt(n / (n - 1)), since n deviations from their own mean are too
    small, and drawn with replacement from those of all cells. (The few deviations of one cell alone have too short
    tails: the noise would seem better known than it is.) Seeds that all cells share are drawn together instead.
    """
    there = np.isfinite(values)
    counts = there.sum(-1)
    means = np.where(there, values, 0.0).sum(-1) / counts
    wider = np.sqrt(counts / np.maximum(counts - 1, 1))
    deviations = np.where(there, (values - means[:, None]) * wider[:, None], np.nan)
    pool = deviations[counts > 1]
    pool = pool[np.isfinite(pool)]
    drawn = generator.choice(pool, size=(draws, *values.shape))
    if shared:
        chosen = generator.integers(values.shape[1], size=(draws, values.shape[1]))
        together = np.moveaxis(deviations[:, chosen], 0, 1)
        drawn = np.where(np.isfinite(together), together, drawn)
    return np.where(there, _shrunk(design, means, found)[:, None] + drawn, np.nan)


def _shrunk(design: Design, means: np.ndarray, found: Variances) -> np.ndarray:
    """The means of the cells with every term scaled to the variance that was estimated for it."""
    coefficients = design.solve @ means
    fitted = design.columns @ coefficients
    scaled = coefficients.copy()
    for place, part in enumerate(design.slices):
        raw = found.raw[0, place]
        scaled[part] *= np.sqrt(max(found.terms[0, place], 0.0) / raw) if raw > 0 else 0.0
    residual = means - fitted
    square, columns = (residual**2).sum(), design.columns.shape[1]
    # So much of it that `estimate` finds this rest again: it spreads what these cells have over the whole grid.
    wanted = max(found.rest[0], 0.0) * (len(means) - columns) * design.cells / max(design.cells - columns, 1)
    rest = np.sqrt(wanted / square) if square > 0 else 0.0
    return np.asarray(design.columns @ scaled + rest * residual)
