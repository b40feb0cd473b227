"""Variances of terms, of the rest and of chance, from the means of cells, freed of noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.analysis.variance.design import Design


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
