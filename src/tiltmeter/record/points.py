"""Points: arrays kept in addition to the curves, one value per point and evaluation, read only when they are used."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
import xarray as xr


class PointSource(Protocol):
    """Where one array comes from. `sizes` costs nothing; `read` may go to a file."""

    @property
    def sizes(self) -> Mapping[str, int]: ...

    def read(self) -> xr.DataArray: ...


class Points(Mapping[str, xr.DataArray]):
    """The per-point arrays of a trajectory by name, each with `time` as its first dimension.

    >>> losses = xr.DataArray([[0.5, 0.7], [0.1, 0.9]], dims=("time", "point"),
    ...                       coords={"time": [0, 10], "group": ("point", ["a", "b"])})
    >>> points = Points({"loss": HeldPoints(losses)})
    >>> points
    <Points loss (time: 2, point: 2)>
    >>> float(points["loss"].sel(time=10).max())
    0.9

    Every access reads the file again, so that a loaded run stays small: keep the array while you work with it.

    Args:
        sources: Where each array comes from, by name; None: there are none.
    """

    __slots__ = ("_sources",)

    def __init__(self, sources: Mapping[str, PointSource] | None = None) -> None:
        object.__setattr__(self, "_sources", dict(sources or {}))

    _sources: dict[str, PointSource]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Points are immutable.")

    def __reduce__(self) -> tuple[Any, ...]:
        return (Points, (self._sources,))

    def __getitem__(self, name: str) -> xr.DataArray:
        if name not in self._sources:
            raise KeyError(f"No points {name!r} were kept. There are: {', '.join(self._sources) or 'none'}.")
        return self._sources[name].read()

    def __contains__(self, name: object) -> bool:
        return name in self._sources

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Points):
            return NotImplemented
        return list(self) == list(other) and all(self[name].equals(other[name]) for name in self)

    __hash__ = None  # type: ignore[assignment]  # holds arrays: compares by value

    def __repr__(self) -> str:
        shapes = [f"{name} {_shape(source.sizes)}" for name, source in self._sources.items()]
        return f"<Points {', '.join(shapes) or 'none'}>"

    def sizes(self, name: str) -> Mapping[str, int]:
        """The dimensions of one array, without reading it."""
        if name not in self._sources:
            raise KeyError(f"No points {name!r} were kept. There are: {', '.join(self._sources) or 'none'}.")
        return self._sources[name].sizes

    def with_times_scaled(self, factor: float) -> Points:
        """The same arrays on another clock."""
        return Points({name: ScaledPoints(source, factor) for name, source in self._sources.items()})


@dataclass(frozen=True, eq=False)
class HeldPoints:
    """An array in memory.

    >>> losses = xr.DataArray([[0.5, 0.7], [0.1, 0.9]], dims=("time", "point"),
    ...                       coords={"time": [0, 10], "group": ("point", ["a", "b"])})
    >>> HeldPoints(losses).sizes
    {'time': 2, 'point': 2}

    Args:
        array: Array with `time` as its first dimension.
    """

    array: xr.DataArray

    @property
    def sizes(self) -> Mapping[str, int]:
        return {str(dim): size for dim, size in self.array.sizes.items()}

    def read(self) -> xr.DataArray:
        return self.array


@dataclass(frozen=True, eq=False)
class ScaledPoints:
    """The array of another source with its times multiplied."""

    source: PointSource
    factor: float

    @property
    def sizes(self) -> Mapping[str, int]:
        return self.source.sizes

    def read(self) -> xr.DataArray:
        array = self.source.read()
        return array.assign_coords(time=array.coords["time"] * self.factor)


@dataclass(frozen=True, eq=False)
class JoinedPoints:
    """The arrays of several runs with one more dimension, at the evaluations that all of them kept."""

    name: str
    sources: tuple[PointSource, ...]
    dim: str
    labels: tuple[Hashable, ...]

    @property
    def sizes(self) -> Mapping[str, int]:
        fewest = min(source.sizes["time"] for source in self.sources)
        return {**self.sources[0].sizes, "time": fewest, self.dim: len(self.sources)}

    def read(self) -> xr.DataArray:
        arrays = [source.read() for source in self.sources]
        for other in arrays[1:]:
            coord = _different_label(arrays[0], other)
            if coord is not None:
                raise ValueError(
                    f"The points of {self.name!r} differ from run to run in `{coord}`: runs can be joined point by "
                    "point only if they looked at the same points."
                )
        index = pd.Index(list(self.labels), name=self.dim, tupleize_cols=False)
        joined = xr.concat(
            arrays, dim=index, join="inner", combine_attrs="override", coords="minimal", compat="override"
        )
        found = joined.transpose(*arrays[0].dims, self.dim)
        found.values.flags.writeable = False
        return found


def join_points(parts: list[Points], dim: str, labels: tuple[Hashable, ...]) -> Points:
    """Join the arrays that all runs kept in the same shape and, in memory, for the same points; leave out others."""
    found: dict[str, PointSource] = {}
    for name in parts[0]:
        if not all(name in part for part in parts):
            continue
        shapes = [{**part.sizes(name), "time": 0} for part in parts]
        sources = tuple(part._sources[name] for part in parts)
        held = [source.array for source in sources if isinstance(source, HeldPoints)]
        alike = all(_different_label(held[0], other) is None for other in held[1:])
        if alike and all(shape == shapes[0] for shape in shapes) and dim not in shapes[0]:
            found[name] = JoinedPoints(name, sources, dim, labels)
    return Points(found)


def _different_label(one: xr.DataArray, other: xr.DataArray) -> Hashable | None:
    """Return a coordinate other than time in which two arrays differ."""
    for coord in {*one.coords, *other.coords} - {"time"}:
        ours, theirs = (array.coords.get(coord) for array in (one, other))
        if ours is None or theirs is None or not np.array_equal(ours.values, theirs.values):
            return coord
    return None


def _shape(sizes: Mapping[str, int]) -> str:
    return "(" + ", ".join(f"{dim}: {size}" for dim, size in sizes.items()) + ")"
