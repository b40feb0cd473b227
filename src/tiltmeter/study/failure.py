"""Failure: why a cell has no result, kept as a file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tiltmeter.notebook_text import NotebookText
from tiltmeter.record.directory.atomic_files import write_json


@dataclass(frozen=True)
class Failure(NotebookText):
    """A cell that failed: its settings, the error in one sentence, the traceback if the function raised it."""

    settings: dict[str, Any]
    error: str
    traceback: str
    seconds: float
    date: str = ""

    def __str__(self) -> str:
        said = ", ".join(f"{name} = {json.dumps(value)}" for name, value in self.settings.items())
        return f"{said}: {self.error}"

    def write(self, path: Path) -> None:
        """Keep it; a later failure of the same cell replaces it."""
        write_json(path, {**asdict(self), "date": datetime.now(UTC).isoformat(timespec="seconds")})

    @classmethod
    def read(cls, path: Path) -> Failure:
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError):
            raise ValueError(f"{path} should say why a cell failed. Found something else: remove it.") from None
