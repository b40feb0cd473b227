"""Cell: one point of a study, its settings and the name under which its result is kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tiltmeter.notebook_text import NotebookText


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
