"""Run rows: the table of a folder, fast: what the names, dates and small files of every run say, without its curves."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from tiltmeter.record.directory.journal import ARRAYS, CURVES
from tiltmeter.record.directory.lock import live_writer
from tiltmeter.record.directory.point_records import POINTS
from tiltmeter.record.directory.small_files import END, LOCK, RUN, TrajectoryHeader, read_end, read_header
from tiltmeter.record.origin import Origin
from tiltmeter.shown_text import visible

#: The folder of a study that holds its runs, and the file that says what it is.
CELLS, STUDY = "cells", "study.json"

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
    found = addressed(root, islice(folders_with(root, RUN, follow=root), MOST))
    _scanned[root] = time.monotonic(), found
    return found


def has_run(root: Path) -> bool:
    """Whether there is any run below the folder."""
    root = root.resolve()
    return next(folders_with(root, RUN, follow=root), None) is not None


def paths_of_runs(root: str, runs: Sequence[str]) -> list[Path]:
    """The directories of these runs that are still there; a ValueError if none is."""
    there = run_folder(Path(root))
    paths = [there[run] for run in runs if run in there]
    if not paths:
        raise ValueError("This run is no longer there.")
    return paths


class Remembered:
    """Values by key, made again when their version has changed; beyond `most` the oldest is forgotten."""

    def __init__(self, most: int = 100_000) -> None:
        self._values: dict[Hashable, tuple[Any, Any]] = {}
        self._most = most

    def get(self, key: Hashable, version: Any, make: Callable[[], Any]) -> Any:
        known = self._values.pop(key, None)
        if known is None or known[0] != version:
            known = version, make()
        self._values[key] = known
        while len(self._values) > self._most:
            del self._values[next(iter(self._values))]
        return known[1]


def address_of(name: bytes) -> str:
    """A name as it stands in an address: itself where it is plain, else a checksum.

    >>> address_of(b"sweep/lr=0.1"), address_of(b"</script>")
    ('sweep/lr=0.1', '~70fe6d3cac27d02b')
    """
    text = name.decode("utf-8", "replace")
    return text if _PLAIN.fullmatch(text) else f"~{hashlib.blake2b(name, digest_size=8).hexdigest()}"


def addressed(root: Path, paths: Iterable[Path]) -> dict[str, Path]:
    """Paths below the folder by their names in addresses."""
    return {address_of(os.fsencode(path.relative_to(root).as_posix())): path for path in paths}


def name_below(path: Path, root: Path) -> str:
    """The name under which the page shows a path below the folder."""
    text = path.relative_to(root).as_posix() if path != root else path.name
    return visible(text.encode("utf-8", "replace").decode())


def files_below(folder: Path, endings: tuple[str, ...], largest: int, depth: int = DEPTH) -> Iterator[Path]:
    """Regular files of these kinds that are not too large; no links, nothing hidden, and nothing inside of runs."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    if any(entry.name == RUN for entry in entries):
        return
    for entry in entries:
        if entry.is_file(follow_symlinks=False) and entry.name.lower().endswith(endings):
            if not entry.name.startswith(".") and entry.stat().st_size <= largest:
                yield Path(entry.path)
        elif depth and entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
            yield from files_below(Path(entry.path), endings, largest, depth - 1)


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


def folders_with(folder: Path, mark: str, depth: int = DEPTH, follow: Path | None = None) -> Iterator[Path]:
    """Folders that hold a file of this name, in order; nothing hidden, and nothing inside of them or of runs.

    A link is followed where it leads to such a folder below `follow`, without going deeper.
    """
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    names = {entry.name for entry in entries}
    if mark in names:
        yield folder
    if mark in names or RUN in names or not depth:
        return
    for entry in sorted(entries, key=lambda one: one.name):
        if entry.name.startswith("."):
            continue  # being written aside
        path = Path(entry.path)
        if not entry.is_symlink():
            if entry.is_dir():
                yield from folders_with(path, mark, depth - 1, follow)
        elif follow is not None and path.is_dir() and is_inside(path, follow):
            circle = follow.is_relative_to(path.resolve())
            yield from () if circle else folders_with(path, mark, 0)


def is_inside(path: Path, root: Path) -> bool:
    """Whether a path, with every link followed, lies below the folder."""
    try:
        return path.resolve().is_relative_to(root)
    except (OSError, RuntimeError):  # a circle of links
        return False


#: How a run ended, by the date and size of its end.json; and what it is alike to, by the date of its run.json.
_ends, _checksums = Remembered(), Remembered()


def run_rows(root: str, known: str = "") -> dict[str, Any]:
    """Every run with its name, state, size and date, newest first, and the time of this machine.

    Complete cells of studies are marked.

    Nothing where the page has it already: `known` is the version that it was told.
    """
    place = Path(root).resolve()
    rows: list[dict[str, Any]] = []
    studies: dict[Path, bool] = {}
    for address, run in run_folder(place, age=0.0).items():
        try:
            status = os.stat(run / CURVES)
        except OSError:
            continue  # deleted meanwhile
        row = {
            "run": address,
            "name": name_below(run, place),
            "state": state_of(run),
            "changed": status.st_mtime,
            "bytes": status.st_size,
        }
        rows.append({**row, "cell": True} if _of_study(run, studies) else row)
    rows.sort(key=lambda row: -row["changed"])
    version = hashlib.blake2b(json.dumps(rows).encode(), digest_size=8).hexdigest()
    return {"now": time.time(), "version": version, **({} if version == known else {"rows": rows})}


def _of_study(run: Path, known: dict[Path, bool]) -> bool:
    """Whether a run is a cell of a study: the page lists these with their study."""
    if run.parent.name != CELLS:
        return False
    folder = run.parent.parent
    if folder not in known:
        known[folder] = (folder / STUDY).is_file()
    return known[folder]


def runs_alike(root: str, run: str) -> list[str]:
    """All runs that differ from this one by their seed only, itself among them."""
    there = run_folder(Path(root))
    if run not in there:
        raise ValueError("This run is no longer there.")
    wanted = _alike(there[run])
    return [name for name, path in there.items() if name == run or (wanted is not None and _alike(path) == wanted)]


def _alike(run: Path) -> str | None:
    def checksum() -> str | None:
        header = read_header(run)
        return alike(header.origin) if isinstance(header, TrajectoryHeader) else None

    try:
        found: str | None = _checksums.get(run, os.stat(run / RUN).st_mtime_ns, checksum)
    except (ValueError, OSError):
        return None
    return found


def alike(origin: Origin) -> str:
    """A checksum of everything but the seed: runs that share it differ by their seed only."""
    text = json.dumps([origin.source, origin.problem, _without_seeds(origin.settings)], sort_keys=True)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _without_seeds(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_seeds(one) for key, one in value.items() if key not in ("seed", "seeds", "order")}
    return [_without_seeds(one) for one in value] if isinstance(value, list) else value


def state_of(run: Path) -> str:
    """Running, died, or how it ended."""
    try:
        status = os.stat(run / END)
    except OSError:
        return "running" if live_writer(run / LOCK) is not None else "died"

    def ended() -> str:
        try:
            end = read_end(run) if status.st_size < 2**20 else None
        except (ValueError, OSError):
            end = None
        return "unknown" if end is None else end.state

    state: str = _ends.get(run, (status.st_mtime_ns, status.st_size), ended)
    return state
