"""Plugins: parts that another distribution adds to tiltmeter.

tiltmeter-lab brings `tiltmeter reproduce` and the evidence tab of the explorer. A distribution registers its parts as
entry points of the group `tiltmeter`. Without it the library works as before.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

GROUP = "tiltmeter"
#: What to say where the laboratory is missing.
WITHOUT_LAB = (
    "The published experiments are a distribution of their own: pip install tiltmeter-lab, or, in a checkout, "
    "pip install ./lab"
)


def plugin(name: str) -> Any | None:
    """What a distribution registered under this name; None if no installed one has it."""
    point = _entry(name)
    return None if point is None else point.load()


def is_installed(name: str) -> bool:
    """Whether a distribution registered this name; nothing is imported."""
    return _entry(name) is not None


def _entry(name: str) -> EntryPoint | None:
    return next(iter(entry_points(group=GROUP, name=name)), None)
