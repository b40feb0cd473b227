"""Fairness: what group curves say about pairs of groups."""

from __future__ import annotations

from collections.abc import Hashable
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
    axis = curve.get_axis_num("group")
    if not isinstance(axis, int):
        raise TypeError("A curve has one group dimension.")
    pairs = list(combinations(range(len(groups)), 2))
    values = [curve.values.take(i, axis) - curve.values.take(j, axis) for i, j in pairs]
    stacked = np.stack(values, axis) if values else np.empty([s if d != "group" else 0 for d, s in curve.sizes.items()])
    coords = {name: coord for name, coord in curve.coords.items() if "group" not in coord.dims}
    names = [pair_name(groups[i], groups[j]) for i, j in pairs]
    dims = tuple("pair" if dim == "group" else dim for dim in curve.dims)
    return xr.DataArray(stacked, dims=dims, coords={**coords, "pair": np.asarray(names, dtype=str)})


def equalised_odds(tpr: xr.DataArray, fpr: xr.DataArray) -> xr.DataArray:
    """The larger of the absolute gaps in true and false positive rate, per pair of groups."""
    larger = np.maximum(np.abs(gap(tpr)), np.abs(gap(fpr)))
    return xr.DataArray(larger)


def disparate_impact(positive_rate: xr.DataArray) -> xr.DataArray:
    """Smallest over largest positive rate; NaN where no one is decided positive.

    >>> disparate_impact(xr.DataArray([0.25, 0.5], dims="group")).item()
    0.5
    """
    largest = positive_rate.max("group", skipna=False)
    return (positive_rate.min("group", skipna=False) / largest.where(largest > 0)).rename(None)
