"""The folder of a study: where its parts lie, what it is (study.json), and why cells failed."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tiltmeter.record.directory.atomic_files import make_folder, read_sealed_json, remove_left_over, write_sealed_json
from tiltmeter.shown_text import NotebookText
from tiltmeter.version import __version__

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
            make_folder(self.root / part)

    def tidy(self) -> None:
        """Remove what processes that were killed left behind: half of a file, or all that lay beside a result."""
        for folder in (self.root, self.root / CELLS, self.root / WORK, self.root / FAILED):
            if folder.is_dir():
                remove_left_over(folder)
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


FORMAT = 1


def write_study(root: Path, said: dict[str, Any]) -> None:
    """Write it, or check that the folder holds the same function: levels and seeds may be added later."""
    path = root / STUDY
    if path.exists():
        held = read_study(root)
        for name in ("module", "name"):
            if held["cell"][name] != said["cell"][name]:
                was, now = (f"{one['cell']['module']}:{one['cell']['name']}" for one in (held, said))
                raise ValueError(f"{root} holds a study of {was}. Found cell = {now}: choose another folder.")
        if {**held, "tiltmeter": None} == {**said, "format": FORMAT, "tiltmeter": None}:
            return
    make_folder(root)
    write_sealed_json(path, {"format": FORMAT, "tiltmeter": __version__, **said})


def read_study(root: Path) -> dict[str, Any]:
    """What the file says; a sentence for everything that is no study."""
    path = root / STUDY
    if not path.is_file():
        raise FileNotFoundError(f"{root} should be the folder of a study. Found no {STUDY} there.")
    try:
        said = read_sealed_json(path, "a study")
        if said["format"] > FORMAT:
            raise ValueError(f"it was written by a newer tiltmeter (format {said['format']})")
        for name in ("cell", "version", "factors", "cells", "fraction", "seeds", "tries", "limit"):
            said[name]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} is not a study of format {FORMAT}: {error}.") from None
    return dict(said)


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
        write_sealed_json(path, {**asdict(self), "date": datetime.now(UTC).isoformat(timespec="seconds")})

    @classmethod
    def read(cls, path: Path) -> Failure:
        try:
            return cls(**read_sealed_json(path, "why a cell failed"))
        except (ValueError, TypeError, RecursionError):
            raise ValueError(f"{path} should say why a cell failed. Found something else: remove it.") from None
