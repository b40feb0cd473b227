"""The frontier of accuracy and fairness: the ways of training that no other beats in both."""

from __future__ import annotations

import numpy as np
import xarray as xr

from tiltmeter.population.criteria import Criterion


def trade_off(found: xr.Dataset, criterion: Criterion) -> np.ndarray:
    """(unfairness, error of the population) of every grid point that has both, shape (n, 2)."""
    unfair, error = xr.broadcast(criterion.of(found), found["population_error"])
    points = np.stack([np.ravel(unfair), np.ravel(error)], axis=1)
    return np.asarray(points[np.isfinite(points).all(axis=1)])


def unbeaten(points: np.ndarray) -> np.ndarray:
    """The points that no other beats in both columns, sorted by the first column.

    >>> unbeaten(np.array([[0.1, 0.5], [0.2, 0.3], [0.3, 0.4]])).tolist()
    [[0.1, 0.5], [0.2, 0.3]]
    """
    ordered = points[np.lexsort((points[:, 1], points[:, 0]))]
    lowest = np.append(np.inf, np.minimum.accumulate(ordered[:, 1])[:-1])
    return np.asarray(ordered[ordered[:, 1] < lowest])
