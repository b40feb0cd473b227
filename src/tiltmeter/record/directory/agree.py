"""Agree: whether a run that is to be continued is the one its directory holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tiltmeter.record.directory.small_files import TrajectoryHeader
from tiltmeter.record.quoted import quoted


def agree(directory: Path, known: TrajectoryHeader, found: TrajectoryHeader) -> None:
    """ValueError names the first thing in which two descriptions of a run differ."""
    if known.clock != found.clock:
        raise ValueError(f'{directory} counts time in "{known.clock}". Found clock = "{found.clock}".')
    old, new = known.origin.to_json(), found.origin.to_json()
    for part in old:
        # An upgrade of the code in between is no reason to lose a long run; its file keeps the version it began with.
        if part != "version" and old[part] != new[part]:
            where, was, now = _first_difference(part, old[part], new[part])
            raise ValueError(
                f"{directory} has another origin: `{where}` was {quoted(was)} and is now {quoted(now)}. "
                "Resume it with the origin it began with, or choose a new name."
            )


def _first_difference(where: str, old: Any, new: Any) -> tuple[str, Any, Any]:
    """Where in nested objects two values first differ, as a path, and both values there.

    >>> _first_difference("recipe", {"lr": 0.1, "batch": {"size": 8}}, {"lr": 0.1, "batch": {"size": 9}})
    ('recipe.batch.size', 8, 9)
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            if old.get(key) != new.get(key):
                return _first_difference(f"{where}.{key}", old.get(key), new.get(key))
    return where, old, new
