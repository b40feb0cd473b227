"""Status: how a study is doing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tiltmeter.notebook_text import NotebookText
from tiltmeter.record.directory.lock import live_writer
from tiltmeter.study.cell import Cell
from tiltmeter.study.places import CELL, CELLS, FAILED, WORK, Places


@dataclass(frozen=True)
class Status(NotebookText):
    """Counts of cells. `other_code` were made by another text of the file with the cell function; `strangers` are
    complete cells of settings that are not part of this study (any more).
    """

    total: int
    done: int
    failed: int
    running: int
    other_code: int = 0
    strangers: int = 0

    @property
    def left(self) -> int:
        """Cells without a result and without a failure."""
        return self.total - self.done - self.failed

    @property
    def complete(self) -> bool:
        """Whether every cell has a result."""
        return self.done == self.total

    def __str__(self) -> str:
        said = f"{self.done} of {self.total} cells done, {self.failed} failed, {self.left} left"
        said += f" ({self.running} running)." if self.running else "."
        if self.other_code:
            said += f" {self.other_code} were made by another version of the file with the cell function."
        if self.strangers:
            said += f" {self.strangers} more are there with settings that this study does not ask for."
        return said

    def to_json(self) -> dict[str, Any]:
        names = ("total", "done", "failed", "running", "left", "other_code", "strangers")
        return {name: getattr(self, name) for name in names}


def status_of(cells: Sequence[Cell], places: Places, fingerprint: str | None) -> Status:
    """From listings of the folders; with a fingerprint, every complete cell is asked which code made it."""
    keys = {cell.key for cell in cells}
    found = places.keys(CELLS)
    done = keys & found
    failed = (keys & places.keys(FAILED)) - done
    running = {key for key in keys & places.keys(WORK) if key not in done and live_writer(places.lock(key)) is not None}
    other = 0 if fingerprint is None else sum(_maker(places, key) != fingerprint for key in done)
    return Status(len(keys), len(done), len(failed - running), len(running), other, len(found - keys))


def _maker(places: Places, key: str) -> str | None:
    try:
        said = json.loads((places.result(key) / CELL).read_bytes())
        return str(said["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
