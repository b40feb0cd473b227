"""same_labels: other numbers with the labels of an array that is already there."""

from __future__ import annotations

from itertools import chain

import numpy as np
import xarray as xr

#: The fields of xarray's two classes. Of classes with other fields, arrays are made by their constructors.
_FIELDS = {"_attrs", "_data", "_dims", "_encoding"}, {"_cache", "_close", "_coords", "_indexes", "_name", "_variable"}


def _fields(kind: type) -> set[str]:
    return set(chain.from_iterable(getattr(cls, "__slots__", ()) for cls in kind.__mro__)) - {"__weakref__"}


_KNOWN = (_fields(xr.Variable), _fields(xr.DataArray)) == _FIELDS
_set = object.__setattr__


def same_labels(blank: xr.DataArray, values: np.ndarray) -> xr.DataArray:
    """The array `blank` with these values, which have its shape. Labels are shared, not copied.

        >>> blank = xr.DataArray([1.0, 2.0], dims="group", coords={"group": ["a", "b"]})
        >>> same_labels(blank, np.array([3.0, 4.0])).sel(group="b").item()
        4.0

    A probe makes sixteen such arrays for every look. xarray's constructors, even without checks, take twice as
    long as this.
    """
    if not _KNOWN:
        fresh = xr.Variable(blank.dims, values, blank.attrs, fastpath=True)
        return xr.DataArray(fresh, blank._coords, name=blank._name, indexes=blank._indexes, fastpath=True)
    before = blank._variable
    variable = object.__new__(xr.Variable)
    _set(variable, "_dims", before._dims)
    _set(variable, "_data", values)
    _set(variable, "_attrs", dict(before._attrs) if before._attrs else None)
    _set(variable, "_encoding", None)
    array = object.__new__(xr.DataArray)
    _set(array, "_variable", variable)
    _set(array, "_coords", blank._coords)
    _set(array, "_name", blank._name)
    _set(array, "_indexes", dict(blank._indexes))
    _set(array, "_close", None)
    return array
