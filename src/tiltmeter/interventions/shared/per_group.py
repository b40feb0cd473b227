"""Numbers given once for all groups, or by group."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np


def checked_per_group(value: Any, name: str, least: float, strict: bool = False) -> Any:
    """A number, or numbers by group as a plain dict; each at least `least`."""
    given: dict[Hashable, Any] = dict(value) if isinstance(value, Mapping) else {None: value}
    if not given:
        raise ValueError(f"`{name}` should name groups. Found none.")
    for group, one in given.items():
        place = name if group is None else f"{name}[{group!r}]"
        if isinstance(one, bool) or not isinstance(one, (int, float, np.integer, np.floating)) or np.isnan(one):
            raise TypeError(f"`{place}` should be a number. Found {place} = {one!r}.")
        if one < least or (strict and one == least):
            word = f"above {least:g}" if strict else f"at least {least:g}"
            raise ValueError(f"`{place}` should be {word}. Found {place} = {one:g}.")
    return {g: float(v) for g, v in given.items()} if isinstance(value, Mapping) else float(value)


def by_group(value: float | Mapping[Hashable, Any], groups: tuple[Hashable, ...], name: str, law: str) -> list[Any]:
    """One value for each group, in their order.

    >>> by_group({"-": 0.1, "+": 0.2}, ("+", "-"), "bound", "DualAscent")
    [0.2, 0.1]
    """
    if not isinstance(value, Mapping):
        return [value] * len(groups)
    listed = ", ".join(map(repr, groups))
    for group in value:
        if group not in groups:
            raise KeyError(f"`{name}` of {law} names the unknown group {group!r}. There are: {listed}.")
    for group in groups:
        if group not in value:
            raise KeyError(f"`{name}` of {law} should name every group; {group!r} is missing. There are: {listed}.")
    return [value[group] for group in groups]
