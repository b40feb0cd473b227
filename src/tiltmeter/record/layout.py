"""Layout: everything about the readings of one curve except their values, and its JSON in a file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import numpy as np
import xarray as xr

from tiltmeter.record.labelled import (
    JSON,
    Labels,
    coord_arrays,
    coords_from_json,
    coords_of,
    labelled_array,
    number_type,
)
from tiltmeter.shown_text import quoted

Time: TypeAlias = int | float


@dataclass(frozen=True)
class Layout:
    """Dimensions with their sizes, the type of number, labels and attributes."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    coords: Mapping[str, Labels] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, array: xr.DataArray) -> Self:
        """The layout of an array that is to be recorded under this name."""
        _named(name)
        if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
            raise TypeError(f"{name!r} should hold real numbers. Found values of type {array.dtype}.")
        try:
            coords, attrs = coords_of(array), plain(array.attrs)
        except TypeError as error:
            raise TypeError(f"{name!r} cannot be recorded. {error}") from None
        groups = coords["group"].labels if "group" in coords and coords["group"].dims == ("group",) else []
        if len(set(groups)) < len(groups):
            twice = next(group for n, group in enumerate(groups) if group in groups[:n])
            raise ValueError(f"The groups of {name!r} should differ. Found {quoted(twice)} twice.")
        return cls(tuple(map(str, array.dims)), array.shape, str(array.dtype), coords, attrs)

    @property
    def size(self) -> int:
        """How many numbers a reading of this layout has."""
        return math.prod(self.shape)

    @property
    def sizes(self) -> dict[str, int]:
        return dict(zip(self.dims, self.shape, strict=True))

    def without_time(self) -> Self:
        """The layout of one reading of a curve that has `time` as its first dimension."""
        coords = {key: labels for key, labels in self.coords.items() if key != "time"}
        return type(self)(self.dims[1:], self.shape[1:], self.dtype, coords, self.attrs)

    def build(self, values: np.ndarray, times: list[Time] | None = None) -> xr.DataArray:
        """Return the array of this layout with these values; with times, one reading after another."""
        dims = self.dims if times is None else ("time", *self.dims)
        coords: dict[str, Any] = {} if times is None else {"time": ("time", np.asarray(times))}
        coords.update(coord_arrays(self.coords, dict(zip(dims, values.shape, strict=True))))
        return labelled_array(values, dims, coords, self.attrs)

    def to_json(self) -> dict[str, JSON]:
        return {
            "dims": list(self.dims),
            "shape": list(self.shape),
            "coords": {name: labels.to_json(name) for name, labels in self.coords.items()},
            "dtype": self.dtype,
            "attrs": dict(self.attrs),
        }

    @classmethod
    def from_json(cls, value: object) -> Self:
        """A layout as read from a file; ValueError says what is wrong with it."""
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
        coords = coords_from_json(value["coords"])
        sizes = dict(zip(dims, shape, strict=True))
        for name, labels in coords.items():
            known = sizes.keys() >= set(labels.dims)
            if not known or len(labels.labels) != math.prod(sizes[dim] for dim in labels.dims):
                raise ValueError(f"the coordinate {quoted(name)} should have one label for each place of its dims")
        return cls(tuple(dims), tuple(shape), value["dtype"], coords, value["attrs"])


def reading(name: str, value: object) -> tuple[Layout, np.ndarray]:
    """One reading of one curve: its layout and its values. A bare number is recorded as a float.

    >>> reading("loss", 0.5)[0].to_json()
    {'dims': [], 'shape': [], 'coords': {}, 'dtype': 'float64', 'attrs': {}}
    """
    _named(name)
    if isinstance(value, (bool, np.bool_)):
        return Layout((), (), "bool"), np.asarray(value, dtype=bool)
    if isinstance(value, (int, float, np.integer, np.floating)):
        try:
            return Layout((), (), "float64"), np.asarray(value, dtype=float)
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
    return Layout.of(name, value), value.values


def point_layout(name: str, array: object) -> Layout:
    """The layout of the first reading of points that are kept beside the curves."""
    if not isinstance(array, xr.DataArray):
        raise TypeError(f"Points of {name!r} should be an xarray.DataArray. Found {type(array).__name__}.")
    if not array.dims or "time" in array.dims:
        raise ValueError(
            f"Points of {name!r} are taken at one time: they should have a dimension, such as `point`, and no `time`. "
            f"Found dims {array.dims}."
        )
    return Layout.of(name, array.drop_vars("time") if "time" in array.coords else array)


def plain(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """Attributes as they will be read back."""
    if all(type(key) is type(value) is str for key, value in attrs.items()):
        return dict(attrs)
    try:
        copy: dict[str, Any] = json.loads(json.dumps(dict(attrs), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise TypeError(f"Attributes should be plain JSON: {error}.") from None
    return copy


def difference(known: Layout, given: Layout) -> str:
    """Describe the first difference between two layouts."""
    for part in ("dims", "shape", "dtype"):
        old, new = getattr(known, part), getattr(given, part)
        if old != new:
            return f"`{part}` was {_brief(old)} and is now {_brief(new)}"
    for key in [*known.coords, *given.coords]:
        before, after = known.coords.get(key), given.coords.get(key)
        if before == after:
            continue
        if before is not None and after is not None and before.dims == after.dims:
            old, new = next((a, b) for a, b in zip(before.labels, after.labels, strict=True) if a != b)
            return f"a label of coordinate `{key}` was {_brief(old)} and is now {_brief(new)}"
        old, new = (None if labels is None else labels.to_json(key) for labels in (before, after))
        return f"coordinate `{key}` was {_brief(old)} and is now {_brief(new)}"
    for key in [*known.attrs, *given.attrs]:
        old, new = known.attrs.get(key), given.attrs.get(key)
        if old != new:
            return f"attribute `{key}` was {_brief(old)} and is now {_brief(new)}"
    return "nothing"


def _named(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise TypeError(f"The name of a curve should be text. Found {name!r}.")


def _brief(part: object) -> str:
    text = "absent" if part is None else json.dumps(part)
    return text if len(text) <= 60 else text[:57] + "..."
