"""table: the results of a study as one labelled Dataset over its factors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from tiltmeter.record import Trajectory
from tiltmeter.shown_text import quoted
from tiltmeter_lab.study.grid import SEED, text

Result: TypeAlias = "Trajectory | xr.Dataset"
Reduce: TypeAlias = "Callable[[Any], Mapping[str, Any] | xr.Dataset]"

#: Numbers in a table; beyond this a fraction of a huge grid is better read cell by cell.
LARGEST = 50_000_000


def last_values(result: Result) -> Mapping[str, Any]:
    """A dataset as it is; of a trajectory the last reading of every curve."""
    if isinstance(result, xr.Dataset):
        return {str(name): result[name] for name in result.data_vars}
    return {name: curve.isel(time=-1, drop=True) for name, curve in result.items() if curve.sizes["time"]}


def build_table(
    factors: Mapping[str, Sequence[Any]],
    seeds: Sequence[int] | None,
    results: Iterable[tuple[Mapping[str, Any], Result]],
    reduce: Reduce,
) -> xr.Dataset:
    """One variable for each number that `reduce` gives, over factors and seeds, NaN where there is no result."""
    levels = {**factors, **({} if seeds is None else {SEED: list(seeds)})}
    places = {name: {text(value): place for place, value in enumerate(values)} for name, values in levels.items()}
    shape = tuple(len(values) for values in levels.values())
    arrays: dict[str, np.ndarray] = {}
    patterns: dict[str, xr.DataArray] = {}
    for settings, result in results:
        where = tuple(places[name][text(settings[name])] for name in levels)
        for name, value in reduce(result).items():
            name = str(name)
            if name not in arrays:
                pattern = value if isinstance(value, xr.DataArray) else xr.DataArray(_number(name, value))
                clash = [dim for dim in pattern.dims if dim in levels]
                if clash:
                    raise ValueError(f"`reduce` should give no dimension named like a factor. Found {clash[0]!r}.")
                if prod(shape) * pattern.size > LARGEST:
                    raise ValueError(
                        f"The table would have {prod(shape) * pattern.size:,} numbers: use `results()` cell by cell, "
                        "or a `reduce` that gives fewer."
                    )
                patterns[name] = pattern
                arrays[name] = np.full((*shape, *pattern.shape), np.nan)
            arrays[name][where] = _values(name, value, patterns[name])
    coords: dict[Any, Any] = {name: _labels(values) for name, values in levels.items()}
    found = {}
    for name, values in arrays.items():
        inner = patterns[name]
        own = {dim: inner.coords[dim] for dim in inner.dims if dim in inner.coords}
        dims = (*levels, *inner.dims)
        labels: dict[Any, Any] = {**coords, **own}
        found[name] = xr.DataArray(values, dims=dims, coords=labels, attrs=inner.attrs)
    return xr.Dataset(found, coords=coords)


def _values(name: str, value: Any, pattern: xr.DataArray) -> Any:
    if not isinstance(value, xr.DataArray):
        return _number(name, value)
    if value.dims != pattern.dims or value.shape != pattern.shape:
        raise ValueError(
            f"`reduce` should give {name!r} the same shape for every cell. Found {dict(pattern.sizes)} and "
            f"{dict(value.sizes)}."
        )
    for dim in pattern.dims:
        if dim in pattern.coords and not np.array_equal(pattern.coords[dim].values, value.coords[dim].values):
            raise ValueError(f"`reduce` should give {name!r} the same labels for every cell. Found others for {dim!r}.")
    return value.values


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"`reduce` should map names to numbers. Found {name} = {quoted(value)}.") from None


def _labels(values: Sequence[Any]) -> list[Any]:
    """Numbers and texts as they are, everything else as JSON."""
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    return list(values) if numbers else [value if isinstance(value, str) else text(value) for value in values]
