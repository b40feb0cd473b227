"""What-if sources: where the forecast page starts: the digits, or files, Tangents and forecasts of the folder."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from tiltmeter.explorer.experiment import Experiment, TangentExperiment, tangent_experiment
from tiltmeter.explorer.run_rows import (
    Remembered,
    addressed,
    files_below,
    folders_with,
    is_inside,
    name_below,
    run_folder,
)
from tiltmeter.forecast.kernel.saved_tangent import ARRAYS
from tiltmeter.forecast.kernel.saved_tangent import TANGENT as TANGENT_FILE
from tiltmeter.record.directory.journal import CURVES
from tiltmeter.record.directory.small_files import RUN, TrajectoryHeader, read_header

#: The most bytes of kernels that the explorer reads.
MOST_BYTES = 2**30


def tangent_folders(root: Path) -> dict[str, Path]:
    """Every saved Tangent below the folder by its name in addresses; links to folders are not followed."""
    return addressed(root, folders_with(root, TANGENT_FILE))


def check_readable(path: Path, root: Path) -> None:
    """Refuse files that are links out of the folder, and kernels that are too large for a page."""
    files = [Path(entry.path) for place in (path, path / ARRAYS) if place.is_dir() for entry in os.scandir(place)]
    for file in files:
        if file.is_symlink() and not is_inside(file, root):
            raise ValueError(f"{file.name} is a link that leads out of the folder, so it is not followed.")
    if sum(file.stat().st_size for file in files) > MOST_BYTES:
        raise ValueError(
            f"This Tangent is larger than {MOST_BYTES // 2**20} MB, the most that is read here: use "
            "`tm.results.load_tangent`."
        )


DIGITS, FILE, TANGENT, SAVED = "digits", "file/", "tangent/", "run/"
#: The most bytes of a TOML file, and the newest runs that are asked whether they are forecasts.
LARGEST_FILE, NEWEST = 2**20, 300
#: The experiments that were bent last, by the date of their file.
_made = Remembered(2)


def what_if_sources(root: str) -> list[dict[str, str]]:
    """Every source with its kind and a name to choose it by."""
    found = [{"source": DIGITS, "kind": "digits", "name": "the digits example"}]
    place = Path(root).resolve()
    for address, path in training_files(place).items():
        found.append({"source": FILE + address, "kind": "file", "name": name_below(path, place)})
    for address, path in tangent_folders(place).items():
        name = f"saved Tangent {name_below(path, place)}"
        found.append({"source": TANGENT + address, "kind": "tangent", "name": name})
    for address, path in _newest(place):
        try:
            header = read_header(path) if (path / RUN).stat().st_size < LARGEST_FILE else None
        except (ValueError, OSError):
            continue
        if isinstance(header, TrajectoryHeader) and header.origin.source == "forecast":
            name = name_below(path, place)
            found.append({"source": SAVED + address, "kind": "saved", "name": f"saved forecast {name}"})
    return found


def experiment_of(root: str, source: str, reader: str | None, fetch: bool) -> Experiment | TangentExperiment:
    """The digits example, what a TOML file of the folder describes, or a saved Tangent of the folder.

    `reader` names the function that reads such a file; the program that starts the server knows it, not the page.
    `fetch` allows data sets that may have to be downloaded.
    """
    if source == DIGITS:
        from tiltmeter.explorer.experiment import digits_experiment

        return digits_experiment()
    place = Path(root).resolve()
    if source.startswith(TANGENT):
        folder = tangent_folders(place).get(source.removeprefix(TANGENT))
        if folder is None:
            raise ValueError("This Tangent is no longer there.")
        check_readable(folder, place)
        name = name_below(folder, place)
        return _kept(root, source, folder / TANGENT_FILE, lambda: tangent_experiment(folder, name))
    path = training_files(place).get(source.removeprefix(FILE)) if source.startswith(FILE) else None
    if path is None or reader is None:
        raise ValueError("This file is no longer there.")
    module, _, name = reader.partition(":")
    return _kept(root, source, path, lambda: getattr(import_module(module), name)(path, place, fetch))


def _kept(root: str, source: str, path: Path, make: Callable[[], Any]) -> Experiment | TangentExperiment:
    """What was made of this file before, unless the file has changed since."""
    experiment: Experiment | TangentExperiment = _made.get((root, source), path.stat().st_mtime_ns, make)
    return experiment


def training_files(root: Path) -> dict[str, Path]:
    """The TOML files below the folder that have a [training] table, by their names in addresses."""
    return addressed(root, filter(_has_training, files_below(root, (".toml",), LARGEST_FILE)))


def _has_training(path: Path) -> bool:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False  # one bad file never hides the others
    return isinstance(tables.get("training"), dict)


def _newest(root: Path) -> list[tuple[str, Path]]:
    dated = []
    for address, path in run_folder(root).items():
        try:
            dated.append((os.stat(path / CURVES).st_mtime, address, path))
        except OSError:
            continue
    return [(address, path) for _, address, path in sorted(dated, reverse=True)[:NEWEST]]
