"""Over seeds: means over repeated runs, shares of runs, and their standard errors.

The standard error of a mean is s / sqrt(n), with s^2 the sum of squared deviations over n - 1 and n the number of runs
that have a value; with one run it is not known (NaN). That of a share is the one of Agresti and Coull, *Approximate is
better than "exact" for interval estimation of binomial proportions* (1998): p = (k + 2) / (n + 4), and
sqrt(p (1 - p) / (n + 4)). Unlike sqrt(k (n - k) / n^3) it is not zero where all runs agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr


def over_seeds(values: xr.DataArray, dim: str = "seed") -> tuple[xr.DataArray, xr.DataArray]:
    """Return the mean over a dimension of repeated runs and its standard error; missing values do not count.

    >>> values = xr.DataArray([[1.0, 3.0], [2.0, np.nan]], dims=("group", "seed"))
    >>> mean, error = over_seeds(values)
    >>> mean.values, error.values
    (array([2., 2.]), array([ 1., nan]))

    The error says how precisely the mean is known, not how far single runs are from it.
    """
    count = values.notnull().sum(dim)
    mean = values.mean(dim)
    if values.sizes[dim] < 2:
        return mean, xr.full_like(mean, np.nan, dtype=float)
    known = count.where(count > 1)  # one value has no scatter
    scatter = (((values - mean) ** 2).sum(dim) / (known - 1)) ** 0.5
    return mean, scatter / known**0.5


def mean_and_error(values: Any) -> tuple[float, float]:
    """Return mean and standard error of one number per run.

    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    numbers = np.asarray(values, dtype=float).ravel()
    known = numbers[~np.isnan(numbers)]
    mean = float(known.mean()) if len(known) else float("nan")
    if len(known) < 2:
        return mean, float("nan")
    with np.errstate(invalid="ignore"):  # of infinite values the scatter is not known
        return mean, float(known.std(ddof=1) / len(known) ** 0.5)


def share(marks: Sequence[bool] | np.ndarray) -> tuple[float, float]:
    """Return the share of runs that are marked, and its standard error; NaN without runs.

    >>> share([True, True, False, True])
    (0.75, 0.171...)
    """
    hits, count = int(np.sum(marks)), len(marks)
    if not count:
        return float("nan"), float("nan")
    middle = (hits + 2.0) / (count + 4.0)
    return hits / count, float((middle * (1.0 - middle) / (count + 4.0)) ** 0.5)
