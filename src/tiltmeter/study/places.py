"""Places: where the parts of a study lie in its folder."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

#: What the study is; its results; what is being computed; what failed.
STUDY, CELLS, WORK, FAILED = "study.json", "cells", "work", "failed"
#: Inside the result of a cell, beside the files of a run: its settings, how long it took and the code that made it.
CELL = "cell.json"


@dataclass(frozen=True)
class Places:
    """The folder of a study."""

    root: Path

    def result(self, key: str) -> Path:
        """The run directory of a complete cell."""
        return self.root / CELLS / key

    def lock(self, key: str) -> Path:
        """Names the process that computes the cell."""
        return self.root / WORK / f"{key}.lock"

    def aside(self, key: str) -> Path:
        """Where the result is written before it is renamed."""
        return self.root / WORK / key

    def tries(self, key: str) -> Path:
        """How many processes began the cell and never ended it."""
        return self.root / WORK / f"{key}.tries"

    def failure(self, key: str) -> Path:
        """Why the cell failed."""
        return self.root / FAILED / f"{key}.json"

    def make(self) -> None:
        """The folders, so that workers need not."""
        for part in (CELLS, WORK, FAILED):
            (self.root / part).mkdir(parents=True, exist_ok=True)

    def tidy(self) -> None:
        """Remove what a process that was killed just after it had renamed a result left beside it."""
        done = self.keys(CELLS)
        for key in self.keys(WORK) & done:
            self.tries(key).unlink(missing_ok=True)
            shutil.rmtree(self.aside(key), ignore_errors=True)

    def keys(self, part: str) -> set[str]:
        """The keys in one of the folders, from one listing."""
        try:
            return {name.split(".")[0] for name in os.listdir(self.root / part) if not name.startswith(".")}
        except FileNotFoundError:
            return set()
