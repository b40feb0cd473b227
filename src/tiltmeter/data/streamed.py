"""Streamed: points that do not fit in memory, read again at every pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


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

    from tiltmeter.data.nested import Nested

    first = parts[0]
    if not isinstance(first, Nested):
        return torch.cat([torch.as_tensor(part) for part in parts])
    if isinstance(first.parts, dict):
        return Nested({name: joined([part.parts[name] for part in parts]) for name in first.parts})
    return Nested(tuple(joined([part.parts[place] for part in parts]) for place in range(len(first.parts))))
