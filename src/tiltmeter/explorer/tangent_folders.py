"""Tangent folders: the saved Tangents of a folder, found by looking and never by joining a name to a path."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tiltmeter.explorer.run_folder import DEPTH, address_of, is_inside
from tiltmeter.forecast.kernel.tangent_files import POINTS, TANGENT
from tiltmeter.record.directory.small_files import RUN

#: The most bytes of kernels that the explorer reads.
MOST_BYTES = 2**30


def tangent_folders(root: Path) -> dict[str, Path]:
    """Every saved Tangent below the folder by its name in addresses; links to folders are not followed."""
    return {
        address_of(os.fsencode(path.relative_to(root).as_posix()) if path != root else b"."): path
        for path in _tangents(root, DEPTH)
    }


def check_readable(path: Path, root: Path) -> None:
    """Refuse files that are links out of the folder, and kernels that are too large for a page."""
    files = [Path(entry.path) for place in (path, path / POINTS) if place.is_dir() for entry in os.scandir(place)]
    for file in files:
        if file.is_symlink() and not is_inside(file, root):
            raise ValueError(f"{file.name} is a link that leads out of the folder, so it is not followed.")
    if sum(file.stat().st_size for file in files) > MOST_BYTES:
        raise ValueError(
            f"This Tangent is larger than {MOST_BYTES // 2**20} MB, the most that is read here: use `tm.load_tangent`."
        )


def _tangents(folder: Path, depth: int) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    names = {entry.name for entry in entries}
    if TANGENT in names:
        yield folder
    if TANGENT in names or RUN in names or not depth:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
            yield from _tangents(Path(entry.path), depth - 1)
