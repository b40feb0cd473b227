"""Labelled numbers: one number, or a whole grid of them with named dimensions, and their JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np
import xarray as xr

from tiltmeter.shown_text import quoted


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


JSON: TypeAlias = bool | int | float | str | list["JSON"] | dict[str, "JSON"] | None
Number: TypeAlias = float | int | xr.DataArray | tuple[str | Sequence[str], Any]

#: Dimensions of curves; a grid of parameters must not use these names.
RESERVED = ("time", "group", "seed", "pair", "vector", "other")


def labelled(value: Number, name: str, reserved: Sequence[str] = RESERVED) -> xr.DataArray:
    """A number or a grid of numbers as a DataArray of floats whose grid dimensions carry labels.

    >>> labelled(0.5, "rho").item()
    0.5
    >>> labelled(("rho", [0.2, 0.8]), "rho").coords["rho"].values
    array([0.2, 0.8])
    >>> labelled([0.2, 0.8], "rho")
    Traceback (most recent call last):
    ...
    TypeError: `rho` should be a number or carry a dimension name, as in ("rho", values). Found list.
    """
    if isinstance(value, xr.DataArray):
        array = value
    elif isinstance(value, tuple) and len(value) == 2 and _names_dimensions(value[0]):
        dims = (value[0],) if isinstance(value[0], str) else tuple(value[0])
        array = xr.DataArray(value[1], dims=dims)
    elif isinstance(value, (bool, np.bool_)) or (not np.isscalar(value) and np.ndim(value) != 0):
        raise TypeError(
            f'`{name}` should be a number or carry a dimension name, as in ("{name}", values). '
            f"Found {type(value).__name__}."
        )
    else:
        try:
            array = xr.DataArray(float(value))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise TypeError(f"`{name}` should be a number. Found {name} = {value!r}.") from None
        except OverflowError:
            raise ValueError(f"`{name}` should be below 1e308. Found a larger number.") from None
    for dim in array.dims:
        if dim in reserved:
            raise ValueError(f"`{name}` has a dimension named {dim!r}, which curves use themselves: rename it.")
    try:
        array = array.astype(float)
    except (TypeError, ValueError):
        raise TypeError(f"`{name}` should hold numbers. Found values of type {array.dtype}.") from None
    if not np.isfinite(array.values).all():
        bad = array.values[~np.isfinite(array.values)].flat[0]
        raise ValueError(f"`{name}` should be finite. Found {name} = {bad}.")
    # rho=("rho", values) labels itself; other dimensions without labels stay so, as everywhere in xarray.
    return array.assign_coords({name: array.values}) if array.dims == (name,) and name not in array.coords else array


def aligned(arrays: Sequence[xr.DataArray], what: str) -> list[xr.DataArray]:
    """The arrays over their common grid; dimensions they share must carry the same labels."""
    try:
        return list(xr.broadcast(*xr.align(*arrays, join="exact")))
    except ValueError as error:
        raise ValueError(f"The grids of {what} do not share their labels: {str(error).splitlines()[0]}") from None


def _names_dimensions(first: object) -> bool:
    return isinstance(first, str) or (
        isinstance(first, (list, tuple)) and len(first) > 0 and all(isinstance(d, str) for d in first)
    )


#: Deeper than any useful value, and far below Python's recursion limit.
DEEPEST = 60


def plain_json(value: Any, depth: int = 0) -> JSON:
    """Return a copy of a plain JSON value, as a file would give it back; refuse anything else.

    >>> plain_json({"lr": 0.1, "groups": ("+", "-")})
    {'lr': 0.1, 'groups': ['+', '-']}
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        if value.bit_length() > 1000:
            raise TypeError("an integer of more than 300 digits is too long")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TypeError(f"{value} has no place in JSON")
        return value
    if depth > DEEPEST:
        raise TypeError(f"it is nested more than {DEEPEST} deep")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"the key {quoted(key)} is not text")
        return {key: plain_json(part, depth + 1) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        # Long lists of numbers (grids of parameters) are checked without a call for each number.
        if set(map(type, value)) <= {float, int} and _all_finite(value):
            return list(value)
        return [plain_json(part, depth + 1) for part in value]
    raise TypeError(f"an object of type {type(value).__name__} is not JSON serializable")


def _all_finite(numbers: Sequence[float]) -> bool:
    try:
        return all(map(math.isfinite, numbers))
    except OverflowError:  # an integer beyond all floats
        return False


def plain_label(label: Hashable) -> Hashable:
    """A label as Python's own objects: text, numbers, None or tuples of them. NaN is one object, equal to itself."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return tuple(plain_label(part) for part in label)
    if isinstance(label, float) and math.isnan(label):
        return math.nan
    if label is None or isinstance(label, (bool, int, float, str)):
        return label
    raise TypeError(f"Labels should be text, numbers or tuples of them to be stored. Found {type(label).__name__}.")


def label_to_json(label: Hashable) -> JSON:
    """One coordinate label; tuples (intersections of groups) become lists, NaN and infinities objects."""
    plain = plain_label(label)
    if isinstance(plain, tuple):
        return [label_to_json(part) for part in plain]
    if isinstance(plain, float) and not math.isfinite(plain):
        return {"float": repr(plain)}
    return cast(JSON, plain)


def label_from_json(value: JSON, depth: int = 0) -> Hashable:
    """The label that `label_to_json` wrote."""
    if isinstance(value, list):
        if depth > DEEPEST:
            raise ValueError(f"a label is nested more than {DEEPEST} deep")
        return tuple(label_from_json(part, depth + 1) for part in value)
    if isinstance(value, dict):
        if list(value) != ["float"] or value["float"] not in ("nan", "inf", "-inf"):
            raise ValueError(f"A label should be text, a number or a list of them. Found {quoted(value)}.")
        return plain_label(float(value["float"]))
    return value


def labels_array(labels: Iterable[Hashable]) -> np.ndarray:
    """Labels as a one-dimensional coordinate, tuples kept whole."""
    labels = list(labels)
    if any(isinstance(label, tuple) for label in labels) or len({type(label) for label in labels}) > 1:
        whole = np.empty(len(labels), dtype=object)
        whole[:] = labels
        return whole
    return np.asarray(labels)


def _plain(labels: list[Any]) -> bool:
    """Whether labels are the same in Python and in JSON."""
    kinds = set(map(type, labels))
    return kinds <= {str, int, bool, type(None)} or (kinds <= {int, float} and _all_finite(labels))


@dataclass(frozen=True)
class Labels:
    """The labels of one coordinate in the order of their array, and the dimensions along which they lie.

    >>> Labels(("group",), [("a", 1), ("b", 2)]).to_json("group")
    [['a', 1], ['b', 2]]
    """

    dims: tuple[str, ...]
    labels: list[Any]

    @classmethod
    def of(cls, name: Hashable, coord: xr.Variable) -> Labels:
        """The labels of a coordinate of an array; TypeError if they could not be stored."""
        kind = coord.dtype.kind
        if kind not in "fiubUTO":
            raise TypeError(f"Labels should be text, numbers or tuples of them. Found {coord.dtype} in `{name}`.")
        labels = coord.values.ravel().tolist()
        if not _plain(labels):
            # A million points share a few groups: each of these is made plain once.
            plain = {place: plain_label(label) for place, label in {id(label): label for label in labels}.items()}
            labels = [plain[id(label)] for label in labels]
        return cls(tuple(map(str, coord.dims)), labels)

    def array(self, sizes: Mapping[str, int]) -> np.ndarray:
        """The labels as a coordinate, for dimensions of these sizes."""
        return self._flat.reshape([sizes[dim] for dim in self.dims])

    @cached_property
    def _flat(self) -> np.ndarray:
        flat = labels_array(self.labels)
        flat.flags.writeable = False
        return flat

    def to_json(self, name: str) -> JSON:
        """A list for the labels of the dimension of this name, an object with its dims for any other."""
        labels: list[JSON] = self.labels if _plain(self.labels) else [label_to_json(label) for label in self.labels]
        return labels if self.dims == (name,) else {"dims": list(self.dims), "labels": labels}

    @classmethod
    def from_json(cls, name: str, value: Any) -> Labels:
        """The labels that `to_json` wrote; a ValueError says what is wrong with them."""
        dims, labels = (value.get("dims"), value.get("labels")) if isinstance(value, dict) else ([name], value)
        if not isinstance(labels, list) or not isinstance(dims, list) or not all(isinstance(dim, str) for dim in dims):
            raise ValueError(f"the coordinate {quoted(name)} should have a list of labels, and the names of its dims")
        if not _plain(labels):
            labels = [label_from_json(label) for label in labels]
        return cls(tuple(dims), labels)


def array_to_json(array: xr.DataArray) -> dict[str, JSON]:
    """A DataArray as plain JSON: dims, coordinates, type and values. NaN is null, infinities are words.

    >>> array_to_json(xr.DataArray([1.5, float("nan")], dims="group", coords={"group": ["+", "-"]}))
    {'dims': ['group'], 'shape': [2], 'coords': {'group': ['+', '-']}, 'dtype': 'float64',
     'values': [1.5, None], 'attrs': {}}
    """
    return {
        "dims": [str(dim) for dim in array.dims],
        "shape": list(array.shape),
        "coords": {name: labels.to_json(name) for name, labels in coords_of(array).items()},
        "dtype": str(array.dtype),
        "values": values_to_json(array.values),
        "attrs": dict(array.attrs),
    }


def coords_of(array: xr.DataArray | xr.Dataset) -> dict[str, Labels]:
    """The labels of every coordinate."""
    return {str(name): Labels.of(name, array.coords[name].variable) for name in array.coords}


def coords_from_json(coords: Mapping[str, Any]) -> dict[str, Labels]:
    """The labels that `Labels.to_json` wrote, of every coordinate."""
    return {name: Labels.from_json(name, coord) for name, coord in coords.items()}


def coord_arrays(coords: Mapping[str, Labels], sizes: Mapping[str, int]) -> dict[str, tuple[tuple[str, ...], Any]]:
    """The coordinates as arrays, for dimensions of these sizes."""
    return {name: (labels.dims, labels.array(sizes)) for name, labels in coords.items()}


def labelled_array(
    values: np.ndarray, dims: tuple[str, ...], coords: Mapping[str, Any], attrs: Mapping[str, Any] | None = None
) -> xr.DataArray:
    """A DataArray whose labels beside those of its dimensions are not copied: a million tuples would take seconds."""
    beside = {name: labels for name, labels in coords.items() if name not in dims}
    array = xr.DataArray(values, dims=dims, coords={name: coords[name] for name in coords if name in dims}, attrs=attrs)
    return array.assign_coords(beside) if beside else array


def array_from_json(value: Mapping[str, Any]) -> xr.DataArray:
    """The DataArray that `array_to_json` wrote."""
    data = values_from_json(value["values"], value["dtype"], value["shape"])
    coords = coord_arrays(coords_from_json(value["coords"]), dict(zip(value["dims"], data.shape, strict=True)))
    return xr.DataArray(data, dims=value["dims"], coords=coords, attrs=value.get("attrs", {}))


def values_to_json(values: np.ndarray) -> JSON:
    """Nested lists of numbers; floats round-trip to the last bit."""
    if values.dtype.kind not in "fiub" or values.dtype.itemsize > 8:
        raise TypeError(f"Only numbers can be recorded. Found values of type {values.dtype}.")
    nested: JSON = values.tolist()
    if values.dtype.kind == "f" and not _finite_numbers(values, nested):
        return _encode_non_finite(nested)
    return nested


def _finite_numbers(values: np.ndarray, nested: Any) -> bool:
    # Most readings have one number per group: NumPy would take five times as long.
    if values.ndim == 1 and values.size <= 16:
        return all(map(math.isfinite, nested))
    return bool(np.isfinite(values).all())


_NUMBER_TYPE = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)|[<>][fiu][248]", re.ASCII)


def number_type(name: object) -> np.dtype[Any]:
    """Return the number type of this name. Only names that we write: some NumPy aliases warn or run code."""
    if not isinstance(name, str) or not _NUMBER_TYPE.fullmatch(name):
        raise ValueError(f"{quoted(name)} is not a type of numbers")
    return np.dtype(name)


def values_from_json(nested: Any, dtype: str, shape: Sequence[int]) -> np.ndarray:
    """The numbers that `values_to_json` wrote."""
    kind = number_type(dtype)
    plain = np.asarray(nested) if kind.kind == "f" else np.asarray(nested, dtype=kind)
    # Only lists that contain null or a word need the slow way.
    values = plain if plain.dtype.kind in "fiub" else np.asarray(_decode_non_finite(nested))
    if values.size != math.prod(shape) or (values.size and values.shape != tuple(shape)):
        raise ValueError(f"values have shape {values.shape} where {tuple(shape)} is expected")
    return values.astype(kind, copy=False).reshape(shape)


_WORDS = {"Infinity": math.inf, "-Infinity": -math.inf}


def _encode_non_finite(nested: Any) -> JSON:
    if isinstance(nested, list):
        return [_encode_non_finite(part) for part in nested]
    if math.isinf(nested):
        return "Infinity" if nested > 0 else "-Infinity"
    return None if math.isnan(nested) else float(nested)


def _decode_non_finite(nested: Any) -> Any:
    if isinstance(nested, list):
        return [_decode_non_finite(part) for part in nested]
    if nested is None:
        return math.nan
    if isinstance(nested, str):
        if nested not in _WORDS:
            raise ValueError(f"{quoted(nested)} is not a number")
        return _WORDS[nested]
    return nested


def plain_pairs(values: Mapping[Any, float] | None) -> JSON:
    """A mapping from groups to numbers as JSON, whatever the labels."""
    return None if values is None else [[label_to_json(key), float(value)] for key, value in values.items()]
