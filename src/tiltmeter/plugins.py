"""Plugins: what the other houses (theory, explorer, laboratory) add to the core.

A house registers its parts as entry points: its verbs in the group `tiltmeter.verbs`, what it knows of the runs it made
in `tiltmeter.sources`, other parts in `tiltmeter.parts`. The core never imports a house by name. Where a house, or a
package that it needs, is not installed, the core works as if it had registered nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

VERBS, SOURCES, PARTS = "tiltmeter.verbs", "tiltmeter.sources", "tiltmeter.parts"
#: What to say where the laboratory is missing.
WITHOUT_LAB = (
    "The published experiments are a distribution of their own: pip install tiltmeter-lab, or, in a checkout, "
    "pip install ./lab"
)


def plugin(group: str, name: str) -> Any | None:
    """What a house registered under this name; None if no installed one has it."""
    point = _entry(group, name)
    return None if point is None else _loaded(point)


def plugins(group: str) -> Iterator[Any]:
    """Everything that the installed houses registered in a group."""
    for point in entry_points(group=group):
        part = _loaded(point)
        if part is not None:
            yield part


def is_installed(group: str, name: str) -> bool:
    """Whether a house registered this name; nothing is imported."""
    return _entry(group, name) is not None


@cache  # what is installed does not change while a process runs, and to search it takes milliseconds
def _entry(group: str, name: str) -> EntryPoint | None:
    return next(iter(entry_points(group=group, name=name)), None)


def _loaded(point: EntryPoint) -> Any | None:
    """The part; None if it needs a package that is not installed (an extra, or the house itself)."""
    try:
        return point.load()
    except ModuleNotFoundError:
        return None
