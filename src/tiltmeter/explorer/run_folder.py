"""Run folder: which run directories a folder holds, found by looking and never by joining a name to a path."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from tiltmeter.record.directory.journal import ARRAYS, CURVES
from tiltmeter.record.directory.point_records import POINTS
from tiltmeter.record.directory.small_files import END, LOCK, RUN

#: How many folders deep runs are looked for, and how many are shown.
DEPTH, MOST = 5, 20_000
#: The most bytes of the file of curves that the explorer reads.
MOST_BYTES = 2**29
_scanned: dict[Path, tuple[float, dict[str, Path]]] = {}
_PLAIN = re.compile(r"[\w][\w./ =,+-]*", re.ASCII)


def run_folder(root: Path, age: float = 1.0) -> dict[str, Path]:
    """Every run below the folder by its name in addresses; links that lead out of the folder are left out.

    What was found at most `age` seconds ago is taken again: a page asks several times a second.
    """
    root = root.resolve()
    scanned = _scanned.get(root)
    if scanned is not None and time.monotonic() - scanned[0] < age:
        return scanned[1]
    found: dict[str, Path] = {}
    for path in _runs(root, root, DEPTH):
        found[address_of(os.fsencode(path.relative_to(root).as_posix()) if path != root else b".")] = path
        if len(found) >= MOST:
            break
    _scanned[root] = time.monotonic(), found
    return found


def address_of(name: bytes) -> str:
    """A name as it stands in an address: itself where it is plain, else a checksum.

    >>> address_of(b"sweep/lr=0.1"), address_of(b"</script>")
    ('sweep/lr=0.1', '~70fe6d3cac27d02b')
    """
    text = name.decode("utf-8", "replace")
    return text if _PLAIN.fullmatch(text) else f"~{hashlib.blake2b(name, digest_size=8).hexdigest()}"


def refusal(root: Path, run: Path) -> str | None:
    """Why a run is not read: files that are links out of the folder, or larger than the explorer reads."""
    root = root.resolve()
    for name in (RUN, CURVES, END, LOCK, ARRAYS, POINTS):
        if (run / name).is_symlink() and not is_inside(run / name, root):
            return f"{name} is a link that leads out of the folder, so it is not followed."
    for folder in (ARRAYS, POINTS):
        if (run / folder).is_dir() and any(
            entry.is_symlink() and not is_inside(Path(entry.path), root) for entry in os.scandir(run / folder)
        ):
            return f"{folder} holds a link that leads out of the folder, so it is not followed."
    for name in (RUN, CURVES):
        if (run / name).exists() and (run / name).stat().st_size > MOST_BYTES:
            return f"{name} is larger than {MOST_BYTES // 2**20} MB, the most that is read here: use `tiltmeter show`."
    return None


def _runs(folder: Path, root: Path, depth: int) -> Iterator[Path]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    if any(entry.name == RUN for entry in entries):
        yield folder
        return
    if depth == 0:
        return
    for entry in sorted(entries, key=lambda one: one.name):
        if entry.name.startswith("."):
            continue  # being written aside
        if entry.is_symlink():
            path = Path(entry.path)
            if path.is_dir() and is_inside(path, root) and not root.is_relative_to(path.resolve()):
                yield from (one for one in _runs(path, root, 0))
        elif entry.is_dir():
            yield from _runs(Path(entry.path), root, depth - 1)


def is_inside(path: Path, root: Path) -> bool:
    """Whether a path, with every link followed, lies below the folder."""
    try:
        return path.resolve().is_relative_to(root)
    except (OSError, RuntimeError):  # a circle of links
        return False
