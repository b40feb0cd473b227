"""Nested: points that consist of several arrays, such as tokens with their mask."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tiltmeter.data.arrays import check_finite_points, is_tensor, points_of


class Streamed:
    """The points of a Dataset or DataLoader, a few at a time; labels and groups are known beforehand.

    `read_block` turns indices into points and labels (a Dataset), or is None and `read_all` goes through everything in
    batches (a DataLoader). `y` are the labels of the first pass: a later pass that gives others would mix up the
    points, and is refused.
    """

    __slots__ = ("_places", "_read_all", "_read_block", "_y", "shape")

    def __init__(
        self,
        y: np.ndarray,
        shape: tuple[Any, ...],
        read_block: Callable[[np.ndarray], tuple[Any, np.ndarray]] | None,
        read_all: Callable[[], Iterator[tuple[Any, np.ndarray]]] | None = None,
        places: np.ndarray | None = None,
    ) -> None:
        self._y, self._read_block, self._read_all = y, read_block, read_all
        self._places = np.arange(len(y)) if places is None else places
        self.shape = (len(self._places), *shape)

    def __len__(self) -> int:
        return len(self._places)

    def take(self, places: np.ndarray) -> Streamed:
        """The points with these indices; nothing is read yet."""
        chosen = self._places[places]
        if self._read_block is None and (np.diff(chosen) <= 0).any():
            raise ValueError("Points of a DataLoader come in its order. Found another order: stream its dataset.")
        return Streamed(self._y, self.shape[1:], self._read_block, self._read_all, chosen)

    def chunks(self, size: int) -> Iterator[tuple[int, Any]]:
        """All points in order, at most `size` (or a batch of the loader) at a time, with the index of the first."""
        if self._read_block is not None:
            for start in range(0, len(self), size):
                yield start, self[start : start + size]
            return
        assert self._read_all is not None
        start = first = 0
        for points, labels in self._read_all():
            self._check(labels, np.arange(first, first + len(labels)))
            inside = self._places[(self._places >= first) & (self._places < first + len(labels))] - first
            first += len(labels)
            if len(inside):
                yield start, points[inside] if len(inside) < len(labels) else points
                start += len(inside)
        if start != len(self):
            raise ValueError(f"A stream should give the same points at every pass. Found {start}, not {len(self)}.")

    def __getitem__(self, places: Any) -> Any:
        """These points, read now."""
        if not isinstance(places, slice):
            places = np.asarray(places)
        if self._read_block is not None:
            chosen = self._places[places]
            points, labels = self._read_block(chosen)
            self._check(labels, chosen)
            return points
        wanted = np.arange(len(self))[places]
        found: dict[int, Any] = {}
        for start, part in self.chunks(1):
            for place in wanted[(wanted >= start) & (wanted < start + len(part))].tolist():
                found[place] = part[place - start : place - start + 1]
        return joined([found[place] for place in wanted.tolist()])

    def _check(self, labels: np.ndarray, places: np.ndarray) -> None:
        if len(labels) != len(places) or places[-1] >= len(self._y) or not np.array_equal(labels, self._y[places]):
            raise ValueError(
                "A stream should give the same points in the same order at every pass. Found other labels than at "
                "first: do not shuffle it."
            )

    def to(self, *where: Any) -> Streamed:  # noqa: ARG002
        """The stream itself: its points are moved when they are read."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"These points are streamed and have no `{name}`: this needs points in memory.")

    def __repr__(self) -> str:
        return f"<Streamed {len(self)} points>"


def joined(parts: list[Any]) -> Any:
    """Blocks of points one after another, nested or not."""
    import torch

    first = parts[0]
    if not isinstance(first, Nested):
        return torch.cat([torch.as_tensor(part) for part in parts])
    if isinstance(first.parts, dict):
        return Nested({name: joined([part.parts[name] for part in parts]) for name in first.parts})
    return Nested(tuple(joined([part.parts[place] for part in parts]) for place in range(len(first.parts))))


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
