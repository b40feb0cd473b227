"""resample: draws of what the study would have given with other seeds."""

from __future__ import annotations

import numpy as np

from tiltmeter.analysis.variance.design import Design
from tiltmeter.analysis.variance.estimate import Variances


def resample(
    design: Design, values: np.ndarray, found: Variances, draws: int, shared: bool, generator: np.random.Generator
) -> np.ndarray:
    """Runs (draws, cells, seeds) around means whose variances are those estimated, not those inflated by noise.

    Deviations from the mean of a cell are drawn from that cell with replacement, wider by sqrt(n / (n - 1)), since n
    deviations from their own mean are too small. Seeds that all cells share are drawn together.
    """
    there = np.isfinite(values)
    counts = there.sum(-1)
    means = np.where(there, values, 0.0).sum(-1) / counts
    wider = np.sqrt(counts / np.maximum(counts - 1, 1))
    deviations = np.where(there, (values - means[:, None]) * wider[:, None], np.nan)
    pool = deviations[counts > 1]
    pool = pool[np.isfinite(pool)]
    if shared:
        chosen = generator.integers(values.shape[1], size=(draws, values.shape[1]))
        drawn = np.moveaxis(deviations[:, chosen], 0, 1)
    else:
        # The runs that are there come first, so that a draw below the count of its cell finds one.
        order = np.argsort(~there, axis=-1, kind="stable")
        packed = np.take_along_axis(deviations, order, -1)
        chosen = (generator.random((draws, *values.shape)) * counts[:, None]).astype(int)
        drawn = np.take_along_axis(np.broadcast_to(packed, (draws, *values.shape)), chosen, -1)
    lonely = np.broadcast_to((counts == 1)[:, None], drawn.shape) | ~np.isfinite(drawn)
    drawn = np.where(lonely, generator.choice(pool, size=drawn.shape), drawn)
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
    size = (residual**2).mean()
    rest = np.sqrt(min(max(found.rest[0], 0.0) / size, 1.0)) if size > 0 else 0.0
    return np.asarray(design.columns @ scaled + rest * residual)
