"""Stored study: a study as its folder tells it, without importing the function that it names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

from tiltmeter.explorer.run_folder import DEPTH, address_of
from tiltmeter.study.cell import Cell
from tiltmeter.study.checks import checked_seeds
from tiltmeter.study.function_reference import FunctionReference
from tiltmeter.study.grid import checked_cells, checked_factors, settings_of
from tiltmeter.study.places import STUDY, Places
from tiltmeter.study.study_file import read_study

#: The most cells of a study that is shown, and the most bytes of its file.
MOST_CELLS, MOST_BYTES = 50_000, 2**24


@dataclass(frozen=True)
class StoredStudy:
    """What `study.json` says. A file that somebody sent may name any function, so it is never imported here."""

    root: Path
    function: str
    factors: dict[str, list[Any]]
    seeds: tuple[int, ...] | None
    cells: tuple[dict[str, Any], ...] | None
    fraction: float | None
    version: str

    @classmethod
    def read(cls, folder: Path) -> StoredStudy:
        if (folder / STUDY).stat().st_size > MOST_BYTES:
            raise ValueError(f"{STUDY} is larger than {MOST_BYTES // 2**20} MB, the most that is read here.")
        said = read_study(folder)
        factors = checked_factors(said["factors"])
        if isinstance(said["seeds"], int) and said["seeds"] > MOST_CELLS:
            raise ValueError(f"This study has {said['seeds']:,} seeds; up to {MOST_CELLS:,} cells are shown here.")
        seeds = checked_seeds(said["seeds"])
        count = prod(len(values) for values in factors.values()) * len(seeds or (0,))
        if count > MOST_CELLS:
            raise ValueError(f"This study has {count:,} cells; up to {MOST_CELLS:,} are shown here.")
        cells = None if said["cells"] is None else checked_cells(said["cells"], factors)
        function = FunctionReference(**said["cell"]).text
        return cls(folder, function, factors, seeds, cells, said["fraction"], str(said["version"]))

    @cached_property
    def places(self) -> Places:
        return Places(self.root)

    @cached_property
    def all_cells(self) -> tuple[Cell, ...]:
        settings = settings_of(self.factors, self.cells, self.fraction, self.seeds)
        return tuple(Cell.of(one, self.function, self.version) for one in settings)


def study_folder(root: Path) -> dict[str, Path]:
    """Every study below the folder by its name in addresses; links are not followed."""
    root = root.resolve()
    found: dict[str, Path] = {}
    for path in _studies(root, DEPTH):
        found[address_of(os.fsencode(path.relative_to(root).as_posix()) if path != root else b".")] = path
    return found


def _studies(folder: Path, depth: int) -> list[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda one: one.name)
    except OSError:
        return []
    if any(entry.name == STUDY and entry.is_file(follow_symlinks=False) for entry in entries):
        return [folder]
    if depth == 0:
        return []
    inner = [Path(e.path) for e in entries if e.is_dir(follow_symlinks=False) and not e.name.startswith(".")]
    return [one for path in inner for one in _studies(path, depth - 1)]
