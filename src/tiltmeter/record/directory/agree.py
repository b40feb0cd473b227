"""Agree: check that a run to be continued is the one in its directory."""

from __future__ import annotations

from pathlib import Path

from tiltmeter.record.directory.small_files import TrajectoryHeader
from tiltmeter.record.labelled import JSON
from tiltmeter.record.quoted import quoted


def agree(directory: Path, known: TrajectoryHeader, found: TrajectoryHeader) -> None:
    """Raise a ValueError that names the first difference between two descriptions of a run."""
    if known.clock != found.clock:
        raise ValueError(f'{directory} counts time in "{known.clock}". Found clock = "{found.clock}".')
    old, new = known.origin.to_json(), found.origin.to_json()
    for part in old:
        # A run may be continued after an upgrade; its file keeps the first version.
        if part != "version" and old[part] != new[part]:
            place, was, now = _first_difference(part, old[part], new[part])
            raise ValueError(
                f"{directory} has another origin: `{place}` was {was} and is now {now}. "
                "Resume it with the origin it began with, or choose a new name."
            )


def _first_difference(place: str, old: JSON, new: JSON) -> tuple[str, str, str]:
    """Return the path of the first difference between two descriptions, and both values.

    >>> _first_difference("recipe", {"lr": 0.1, "batch": {"size": 8}}, {"lr": 0.1, "batch": {"size": 9}})
    ('recipe.batch.size', '8', '9')
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            if key not in old or key not in new:
                was, now = (quoted(one[key], 200) if key in one else "not set" for one in (old, new))
                return f"{place}.{key}", was, now
            if old[key] != new[key]:
                return _first_difference(f"{place}.{key}", old[key], new[key])
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            if one != other:
                return _first_difference(f"{place}[{number}]", one, other)
    return place, quoted(old, 200), quoted(new, 200)
