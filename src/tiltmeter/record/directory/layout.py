"""Layout: everything about the readings of one curve except their values, as plain JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from tiltmeter.record.labelled import coords_from_json, layout_to_json, number_type
from tiltmeter.record.quoted import quoted

Layout: TypeAlias = dict[str, Any]
Time: TypeAlias = int | float


def reading(name: str, value: object) -> tuple[Layout, np.ndarray]:
    """One reading of one curve: its layout and its values. A bare number is recorded as a float.

    >>> reading("loss", 0.5)[0]
    {'dims': [], 'shape': [], 'coords': {}, 'dtype': 'float64', 'attrs': {}}
    """
    _named(name)
    if isinstance(value, (bool, np.bool_)):
        return _bare("bool"), np.asarray(value, dtype=bool)
    if isinstance(value, (int, float, np.integer, np.floating)):
        try:
            return _bare("float64"), np.asarray(value, dtype=float)
        except OverflowError:
            raise ValueError(f"A reading of {name!r} is too large for a float: it is {quoted(value)}.") from None
    if not isinstance(value, xr.DataArray):
        raise TypeError(
            f"A reading of {name!r} should be a number or an xarray.DataArray. Found {type(value).__name__}."
        )
    if "time" in value.dims:
        raise ValueError(
            f"A reading of {name!r} is taken at one time: it should have no `time` dimension. Found dims {value.dims}."
        )
    if "time" in value.coords:  # a reading selected from a curve still has its time as a coordinate
        value = value.drop_vars("time")
    return layout(name, value), value.values


def point_layout(name: str, array: object) -> Layout:
    """The layout of the first reading of points that are kept beside the curves."""
    if not isinstance(array, xr.DataArray):
        raise TypeError(f"Points of {name!r} should be an xarray.DataArray. Found {type(array).__name__}.")
    if not array.dims or "time" in array.dims:
        raise ValueError(
            f"Points of {name!r} are taken at one time: they should have a dimension, such as `point`, and no `time`. "
            f"Found dims {array.dims}."
        )
    return layout(name, array.drop_vars("time") if "time" in array.coords else array)


def layout(name: str, array: xr.DataArray) -> Layout:
    """The layout of an array that is to be recorded under this name."""
    _named(name)
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise TypeError(f"{name!r} should hold real numbers. Found values of type {array.dtype}.")
    try:
        return {**layout_to_json(array), "attrs": plain(array.attrs)}
    except TypeError as error:
        raise TypeError(f"{name!r} cannot be recorded. {error}") from None


def plain(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """Attributes as they will be read back."""
    if not attrs:
        return {}
    try:
        copy: dict[str, Any] = json.loads(json.dumps(dict(attrs), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise TypeError(f"Attributes should be plain JSON: {error}.") from None
    return copy


def difference(known: Layout, found: Layout) -> str:
    """Describe the first difference between two layouts."""
    for part in ("dims", "shape", "dtype"):
        if known[part] != found[part]:
            return f"`{part}` was {_brief(known[part])} and is now {_brief(found[part])}"
    for part, word in (("coords", "coordinate"), ("attrs", "attribute")):
        for key in [*known[part], *found[part]]:
            old, new = known[part].get(key), found[part].get(key)
            if old == new:
                continue
            if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
                old, new = next((a, b) for a, b in zip(old, new, strict=True) if a != b)
                return f"a label of {word} `{key}` was {_brief(old)} and is now {_brief(new)}"
            return f"{word} `{key}` was {_brief(old)} and is now {_brief(new)}"
    return "nothing"


def checked(value: object, labels: bool = True) -> Layout:
    """A layout as read from a file, its labels too if asked; ValueError says what is wrong with it."""
    if not isinstance(value, dict):
        raise ValueError("a layout should be an object")
    parts = {"dims": list, "shape": list, "coords": dict, "dtype": str, "attrs": dict}
    for part, kind in parts.items():
        if not isinstance(value.get(part), kind):
            raise ValueError(f"a layout should have `{part}`")
    dims, shape = value["dims"], value["shape"]
    whole = all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape)
    if not whole or not all(isinstance(dim, str) for dim in dims) or not len(set(dims)) == len(dims) == len(shape):
        raise ValueError("a layout should have one size for each dimension")
    number_type(value["dtype"])
    if math.prod(shape) > 2**40:
        raise ValueError("a layout should have sizes that fit into memory")
    if labels:
        coords_from_json(value["coords"], dict(zip(dims, shape, strict=True)))
    return value


def build(layout: Layout, values: np.ndarray, times: list[Time] | None = None) -> xr.DataArray:
    """Return the array of this layout with these values; with times, one reading after another."""
    dims = list(layout["dims"]) if times is None else ["time", *layout["dims"]]
    coords = {} if times is None else {"time": ("time", np.asarray(times))}
    coords.update(coords_from_json(layout["coords"], dict(zip(dims, values.shape, strict=True))))
    return xr.DataArray(values, dims=dims, coords=coords, attrs=layout["attrs"])


def size(layout: Layout) -> int:
    """How many numbers a reading of this layout has."""
    return math.prod(layout["shape"])


def _bare(dtype: str) -> Layout:
    return {"dims": [], "shape": [], "coords": {}, "dtype": dtype, "attrs": {}}


def _named(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise TypeError(f"The name of a curve should be text. Found {name!r}.")


def _brief(part: object) -> str:
    text = "absent" if part is None else json.dumps(part)
    return text if len(text) <= 60 else text[:57] + "..."
