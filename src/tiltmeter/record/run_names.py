"""Names of runs that are shown together."""

from __future__ import annotations

from collections.abc import Sequence


def numbered(names: Sequence[str]) -> list[str]:
    """Return the names, with a number added to those that occur more than once.

    >>> numbered(["theory", "training", "training"])
    ['theory', 'training 1', 'training 2']
    """
    return [f"{name} {names[: i + 1].count(name)}" if names.count(name) > 1 else name for i, name in enumerate(names)]
