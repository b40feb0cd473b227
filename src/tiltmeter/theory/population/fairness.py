"""Fairness: comparisons between groups, computed from group curves."""

from __future__ import annotations

from collections.abc import Hashable
from functools import reduce
from itertools import combinations

import numpy as np
import xarray as xr


def pair_name(first: Hashable, second: Hashable) -> str:
    """The label of a pair along the dimension `pair`.

    >>> pair_name("+", "-")
    '+ vs -'
    """
    return f"{first} vs {second}"


def gap(curve: xr.DataArray) -> xr.DataArray:
    """First minus second, for every pair of groups in the order of `group`; dimension `pair` replaces `group`.

    >>> gap(xr.DataArray([0.25, 0.5], dims="group", coords={"group": ["+", "-"]})).to_series().to_dict()
    {'+ vs -': -0.25}
    """
    groups = list(curve.coords["group"].values.tolist())
    pairs = list(combinations(range(len(groups)), 2))
    each = _by_group(curve)
    # In the memory layout of the curve, whichever dimension comes first in it: reading along is what takes the time.
    shape = tuple(len(pairs) if dim == "group" else size for dim, size in curve.sizes.items())
    found = np.empty_like(curve.values, shape=shape)
    into = np.moveaxis(found, curve.dims.index("group"), 0)
    for k, (i, j) in enumerate(pairs):
        np.subtract(each[i], each[j], out=into[k, ...])
    coords = {name: coord for name, coord in curve.coords.items() if "group" not in coord.dims}
    names = [pair_name(groups[i], groups[j]) for i, j in pairs]
    dims = tuple("pair" if dim == "group" else dim for dim in curve.dims)
    return xr.DataArray(found, dims=dims, coords={**coords, "pair": np.asarray(names, dtype=str)})


def equalised_odds(tpr: xr.DataArray, fpr: xr.DataArray) -> xr.DataArray:
    """The larger of the absolute gaps in true and false positive rate, per pair of groups."""
    larger, other = gap(tpr), gap(fpr).values
    np.abs(larger.values, out=larger.values)
    np.maximum(larger.values, np.abs(other, out=other), out=larger.values)
    return larger


def disparate_impact(positive_rate: xr.DataArray) -> xr.DataArray:
    """Smallest positive rate divided by the largest; NaN if nobody is decided positive.

    >>> disparate_impact(xr.DataArray([0.25, 0.5], dims="group")).item()
    0.5
    """
    each = _by_group(positive_rate)
    smallest, largest = reduce(np.minimum, each), reduce(np.maximum, each)
    ratio = np.full_like(largest, np.nan)
    np.divide(smallest, largest, out=ratio, where=largest > 0)
    return positive_rate.isel(group=0, drop=True).copy(data=ratio).rename(None)


def _by_group(curve: xr.DataArray) -> np.ndarray:
    """The values with the groups in front: a view."""
    return np.moveaxis(curve.values, curve.dims.index("group"), 0)
