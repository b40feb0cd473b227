"""Nested: points that consist of several arrays, such as tokens with their mask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tiltmeter.data.arrays import check_finite_points, is_tensor, points_of


class Nested:
    """Points in parts with names (a dict) or in order (a tuple); every part has one row per point.

    >>> points = Nested({"tokens": np.arange(6).reshape(3, 2), "mask": np.ones((3, 2), dtype=bool)})
    >>> len(points), points[1:].parts["tokens"].tolist(), points.shape
    (3, [[2, 3], [4, 5]], (3, {'tokens': [2], 'mask': [2]}))

    A model gets the parts as they are: by name or in order where its `forward` takes so many, else as one argument.
    """

    __slots__ = ("parts",)
    parts: dict[str, Any] | tuple[Any, ...]

    def __init__(self, parts: Mapping[str, Any] | tuple[Any, ...]) -> None:
        if isinstance(parts, Mapping):
            self.parts = {str(name): _part(value) for name, value in parts.items()}
        else:
            self.parts = tuple(_part(value) for value in parts)
        lengths = {len(value) for value in self.values}
        if len(lengths) != 1:
            found = ", ".join(f"{len(value)} in {name}" for name, value in self.named())
            raise ValueError(f"Parts of `x` should have one row per point. Found {found or 'no parts'}.")

    @property
    def values(self) -> tuple[Any, ...]:
        """The parts without their names."""
        return tuple(self.parts.values()) if isinstance(self.parts, dict) else self.parts

    def named(self) -> list[tuple[str, Any]]:
        """The parts with their names, or with their numbers."""
        if isinstance(self.parts, dict):
            return list(self.parts.items())
        return [(str(place), value) for place, value in enumerate(self.parts)]

    @property
    def shape(self) -> tuple[Any, ...]:
        """The number of points, and the shape of a point part by part."""
        return len(self), {name: [int(n) for n in value.shape[1:]] for name, value in self.named()}

    def each(self, change: Callable[[Any], Any]) -> Nested:
        """The same structure with every part changed; nothing is checked."""
        other = object.__new__(Nested)
        if isinstance(self.parts, dict):
            other.parts = {name: change(value) for name, value in self.parts.items()}
        else:
            other.parts = tuple(map(change, self.parts))
        return other

    def to(self, *where: Any) -> Nested:
        """Every part on this device or in this type, as the method of tensors."""
        return self.each(lambda value: value.to(*where))

    def check_finite(self) -> None:
        """Refuse NaN and infinity in any part."""
        for name, value in self.named():
            check_finite_points(value, f"`x`, part {name},")

    def __len__(self) -> int:
        return len(self.values[0]) if self.values else 0

    def __getitem__(self, places: Any) -> Nested:
        return self.each(lambda value: value[places])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"These points are in parts ({', '.join(part for part, _ in self.named())}) and have no `{name}`: this "
            "needs points that are one array."
        )

    def __repr__(self) -> str:
        return f"<Nested {len(self)} points: {', '.join(name for name, _ in self.named())}>"


def nested_points(x: Any, points: int) -> Any:
    """A dict, or a tuple of arrays with one row for each of so many points, as Nested; all else as it is."""
    if isinstance(x, Mapping):
        return Nested(x)
    arrays = isinstance(x, tuple) and x and all(isinstance(part, np.ndarray) or is_tensor(part) for part in x)
    if arrays and all(part.ndim and len(part) == points for part in x):
        return Nested(x)
    return x


def _part(value: Any) -> Any:
    return points_of(value)
