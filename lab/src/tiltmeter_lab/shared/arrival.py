"""arrival: the first time at which a falling curve is below a level, for each run."""

from __future__ import annotations

import numpy as np
import xarray as xr


def first_below(curve: xr.DataArray, level: xr.DataArray | float) -> xr.DataArray:
    """Return the first time at which the curve lies below the level; infinite if it never does.

    >>> fall = xr.DataArray([1.0, 0.6, 0.4], dims="time", coords={"time": [0, 10, 20]})
    >>> float(first_below(fall, 0.5)), float(first_below(fall, 0.1))
    (20.0, inf)
    """
    below = curve < level
    first = curve["time"].astype(float)[below.argmax("time")].drop_vars("time")
    return first.where(below.any("time"), np.inf)


def times_later(later: xr.DataArray, earlier: xr.DataArray) -> xr.DataArray:
    """Return the ratio of two arrivals in every run; 0 if the one that should be early never arrived.

    >>> early, late = (xr.DataArray(times, dims="seed") for times in ([10.0, 10.0, np.inf], [np.inf, 10.0, np.inf]))
    >>> times_later(late, early).values
    array([inf,  1.,  0.])
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return (later / earlier).where(np.isfinite(earlier), 0.0)
