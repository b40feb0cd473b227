"""The grid over which labelled numbers vary, and numbers laid out flat along it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod
from typing import Any

import numpy as np
import xarray as xr


def common_grid(grid: xr.Dataset, parts: Sequence[xr.DataArray], what: str) -> xr.Dataset:
    """Return a grid extended by the dimensions of more numbers; shared dimensions must have the same labels.

    >>> rho = xr.DataArray([0.2, 0.8], dims="rho", coords={"rho": [0.2, 0.8]})
    >>> dict(common_grid(xr.Dataset(), [rho], "problem and SGD").sizes)
    {'rho': 2}
    """
    parts = [part for part in parts if part.ndim]
    if not parts:
        return grid
    try:
        xr.align(grid, *parts, join="exact")
    except ValueError as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"The grids of {what} do not share their labels: {reason}") from None
    coords: dict[Hashable, Any] = dict(grid.coords)
    for part in parts:
        # Labels given anywhere replace plain indices.
        coords.update({dim: part.coords[dim].variable for dim in part.dims if dim in part.coords})
        coords.update({dim: np.arange(size) for dim, size in part.sizes.items() if dim not in coords})
    return xr.Dataset(coords=coords)


def flat(array: Any, grid: xr.Dataset, *lead: str) -> np.ndarray:
    """A number or labelled array as (N, ...) over the N points of the grid, then its own dimensions `lead`.

    >>> flat(3.0, xr.Dataset(coords={"rho": [0.2, 0.8]}))
    array([3., 3.])
    """
    count = prod(grid.sizes.values())
    if not isinstance(array, xr.DataArray):
        return np.full(count, float(array))
    if not grid.sizes:
        return np.ascontiguousarray(array.transpose(*lead).values[None])
    missing = {dim: size for dim, size in grid.sizes.items() if dim not in array.dims}
    whole = array.expand_dims(missing) if missing else array
    values = whole.transpose(*grid.sizes, *lead).values
    return np.ascontiguousarray(values.reshape(count, *values.shape[len(grid.sizes) :]))
