"""Checks of what a study is given, each with its sentence."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from tiltmeter.record.quoted import quoted
from tiltmeter.study.grid import text


def checked_seeds(seeds: int | Sequence[int] | None) -> tuple[int, ...] | None:
    """A number of seeds, or the seeds themselves, each once.

    >>> checked_seeds(3), checked_seeds([7, 8])
    ((0, 1, 2), (7, 8))
    """
    if seeds is None:
        return None
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        checked_count(seeds, "seeds")
        return tuple(range(seeds))
    try:
        found = tuple(operator.index(seed) for seed in seeds)  # type: ignore[union-attr]
    except TypeError:
        raise TypeError(f"`seeds` should be a number or a list of whole numbers. Found {quoted(seeds)}.") from None
    if not found or len(set(found)) < len(found):
        raise ValueError(f"`seeds` should list at least one seed, each once. Found seeds = {quoted(list(found))}.")
    return found


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
