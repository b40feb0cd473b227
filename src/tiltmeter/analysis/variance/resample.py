"""resample: draws of what the study would have given with other seeds."""

from __future__ import annotations

import numpy as np

from tiltmeter.analysis.variance.design import Design
from tiltmeter.analysis.variance.variances import Variances


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
