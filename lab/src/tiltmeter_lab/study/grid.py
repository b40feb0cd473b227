"""grid: the settings of all cells of a study, from factors, from a fraction of their grid, or from a list."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tiltmeter.shown_text import NotebookText, quoted


@dataclass(frozen=True)
class Cell(NotebookText):
    """Settings in plain JSON, and the hash of them, of the function's name and of its declared version.

    >>> cell = Cell.of({"width": 16, "seed": 0}, "mine:train", "1")
    >>> cell.key[:8], cell == Cell.of({"seed": 0, "width": 16}, "mine:train", "1")
    ('e8df4ef0', True)
    """

    settings: Mapping[str, Any]
    key: str

    @classmethod
    def of(cls, settings: Mapping[str, Any], function: str, version: str) -> Cell:
        said = {"settings": settings, "cell": function, "version": version}
        # Sorted and without spaces: the name must not depend on the order in which settings were written down.
        text = json.dumps(said, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return cls(dict(settings), hashlib.sha256(text.encode()).hexdigest()[:32])

    def __str__(self) -> str:
        return ", ".join(f"{name} = {json.dumps(value)}" for name, value in self.settings.items())


SEED = "seed"


def checked_factors(factors: Mapping[str, Sequence[Any] | np.ndarray]) -> dict[str, list[Any]]:
    """Named lists of JSON values, each value once.

    >>> checked_factors({"width": [16, 16]})
    Traceback (most recent call last):
    ValueError: A factor should list every value once. Found 16 twice in `width`.
    """
    if not isinstance(factors, Mapping):
        raise TypeError(f"`factors` should map names to lists of values. Found {type(factors).__name__}.")
    found = {}
    for name, values in factors.items():
        if not isinstance(name, str) or not name.isidentifier() or name == SEED:
            raise ValueError(f"The name of a factor should be a word other than `seed`. Found {quoted(name)}.")
        if isinstance(values, np.ndarray) and values.ndim == 1:
            values = values.tolist()
        if isinstance(values, (str, bytes)) or not isinstance(values, Sequence) or not values:
            raise TypeError(f"A factor should be a list of at least one value. Found {name} = {quoted(values)}.")
        found[name] = [plain(value, name) for value in values]
        texts = [text(value) for value in found[name]]
        for place, one in enumerate(texts):
            if one in texts[:place]:
                raise ValueError(f"A factor should list every value once. Found {one} twice in `{name}`.")
    return found


def checked_cells(cells: Sequence[Mapping[str, Any]], factors: Mapping[str, list[Any]]) -> tuple[dict[str, Any], ...]:
    """An explicit list of cells: all have the factors, each with one of its values."""
    names = list(factors)
    found, seen = [], set()
    for place, cell in enumerate(cells):
        if not isinstance(cell, Mapping) or set(cell) != set(names):
            raise ValueError(f"Every cell should set {', '.join(names)} and no more. Found {quoted(cell)}.")
        settings = {name: plain(cell[name], name) for name in names}
        if text(settings) in seen:
            raise ValueError(f"A cell should be listed once. Found number {place} again: {quoted(settings)}.")
        seen.add(text(settings))
        found.append(settings)
    return tuple(found)


def factors_of(cells: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The values that occur in a list of cells, in order of appearance.

    >>> factors_of([{"width": 16, "lr": 0.1}, {"width": 64, "lr": 0.1}])
    {'width': [16, 64], 'lr': [0.1]}
    """
    if not cells or not all(isinstance(cell, Mapping) for cell in cells):
        raise TypeError(f"`cells` should be a list of tables, at least one. Found cells = {quoted(cells)}.")
    found: dict[str, list[Any]] = {}
    for cell in cells:
        for name, value in cell.items():
            values = found.setdefault(name, [])
            if text(value) not in map(text, values):
                values.append(value)
    return found


def settings_of(
    factors: Mapping[str, list[Any]],
    cells: Sequence[Mapping[str, Any]] | None,
    fraction: float | None,
    seeds: Sequence[int] | None,
) -> Iterator[dict[str, Any]]:
    """Settings of every cell, seeds last; a fraction keeps the same cells on every machine, with all their seeds.

    >>> list(settings_of({"width": [16, 64]}, None, None, [0, 1]))[1]
    {'width': 16, 'seed': 1}
    """
    grid = (
        [dict(zip(factors, values, strict=True)) for values in product(*factors.values())]
        if cells is None
        else [dict(cell) for cell in cells]
    )
    if fraction is not None:
        # By hash: a larger fraction contains the smaller one, so a study can grow.
        order = sorted(range(len(grid)), key=lambda place: hashlib.sha256(text(grid[place]).encode()).digest())
        kept = set(order[: max(1, math.ceil(fraction * len(grid)))])
        grid = [settings for place, settings in enumerate(grid) if place in kept]
    for settings in grid:
        yield from ([settings] if seeds is None else ({**settings, SEED: seed} for seed in seeds))


def plain(value: Any, name: str) -> Any:
    """A copy of a value as JSON reads it back."""
    try:
        return json.loads(text(value))
    except (TypeError, ValueError):
        raise TypeError(f"The values of a factor should be plain JSON. Found {name} = {quoted(value)}.") from None


def text(value: Any) -> str:
    """A value as canonical JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def checked_count(value: int, name: str) -> None:
    """A number of things, at least one."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"`{name}` should be a whole number of at least 1. Found {name} = {quoted(value)}.")


def checked_limit(limit: float | None) -> None:
    """Seconds, or none."""
    if limit is None:
        return
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 < limit < 1e9:
        raise ValueError(f"`limit` should be a positive number of seconds. Found limit = {quoted(limit)}.")


def checked_only(only: Mapping[str, Any], levels: Mapping[str, list[Any]]) -> dict[str, set[str]]:
    """Values to keep, as canonical JSON: one or a list for each factor named.

    >>> checked_only({"width": 65}, {"width": [16, 64]})
    Traceback (most recent call last):
    ValueError: `only` should name values of the study: `width` is one of 16, 64. Found width = 65.
    """
    wanted = {}
    for name, value in only.items():
        if name not in levels:
            raise KeyError(f"`only` should name factors of the study: {', '.join(levels)}. Found {quoted(name)}.")
        values = value if isinstance(value, list) else [value]
        for one in values:
            if text(one) not in map(text, levels[name]):
                known = ", ".join(map(text, levels[name]))
                raise ValueError(
                    f"`only` should name values of the study: `{name}` is one of {known}. Found {name} = {quoted(one)}."
                )
        wanted[name] = set(map(text, values))
    return wanted
