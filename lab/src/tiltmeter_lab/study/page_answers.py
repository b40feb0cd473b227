"""Study answers: how a study stands, its cells over two factors, and what explains a number of it."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Mapping
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.explorer.run_rows import address_of, addressed, folders_with, is_inside, name_below, refusal
from tiltmeter.plot.theme import group_name
from tiltmeter.record import load
from tiltmeter.record.directory.lock import live_writer
from tiltmeter.shown_text import visible
from tiltmeter_lab.study.folder import CELLS, FAILED, STUDY, WORK, Failure, read_study
from tiltmeter_lab.study.grid import Cell, text
from tiltmeter_lab.study.status import status_of
from tiltmeter_lab.study.study import Study
from tiltmeter_lab.study.table import build_table, last_values
from tiltmeter_lab.study.variance.shares import shares

#: The most cells of a study that is shown, and the most bytes of its file.
MOST_CELLS, MOST_BYTES = 50_000, 2**24


def stored_study(folder: Path) -> Study:
    """The study of a folder, not too large to be shown. Its function, which may be any, is never imported here."""
    if (folder / STUDY).stat().st_size > MOST_BYTES:
        raise ValueError(f"{STUDY} is larger than {MOST_BYTES // 2**20} MB, the most that is read here.")
    said = read_study(folder)
    if isinstance(said["seeds"], int) and said["seeds"] > MOST_CELLS:
        raise ValueError(f"This study has {said['seeds']:,} seeds; up to {MOST_CELLS:,} cells are shown here.")
    study = Study.load(folder)
    count = prod(len(values) for values in study.levels.values()) * len(study.all_seeds or (0,))
    if count > MOST_CELLS:
        raise ValueError(f"This study has {count:,} cells; up to {MOST_CELLS:,} are shown here.")
    return study


def study_folder(root: Path) -> dict[str, Path]:
    """Every study below the folder by its name in addresses; links are not followed."""
    root = root.resolve()
    return addressed(root, (path for path in folders_with(root, STUDY) if not (path / STUDY).is_symlink()))


#: Seconds that one question may take; the page asks again for the rest.
PATIENCE = 1.5
#: The most numbers of one curve of a cell, such as groups times classes.
MOST_NUMBERS = 40
#: What was read before: run directory of a cell -> its numbers. A complete cell never changes.
_read: dict[Path, Mapping[str, float]] = {}
KEPT = 100_000


def study_numbers(root: Path, study: Study) -> tuple[xr.Dataset, int, int]:
    """The table of numbers so far, how many complete cells it holds, and how many there are."""
    done = study.places.keys(CELLS)
    wanted = [cell for cell in study.all_cells if cell.key in done]
    end = time.monotonic() + PATIENCE
    found = []
    for cell in wanted:
        place = study.places.result(cell.key)
        if place not in _read:
            if time.monotonic() > end:
                continue
            _read[place] = _numbers(root, place)
        found.append((cell.settings, _read[place]))
    while len(_read) > KEPT:
        del _read[next(iter(_read))]
    return build_table(study.levels, study.all_seeds, found, dict), len(found), len(wanted)  # type: ignore[arg-type]


def _numbers(root: Path, place: Path) -> dict[str, float]:
    """Every last value by a name that says what it is; of two groups also their gap."""
    if not is_inside(place, root) or refusal(root, place) is not None:
        return {}
    try:
        values = last_values(load(place))
    except (ValueError, OSError, KeyError):
        return {}
    found: dict[str, float] = {}
    for name, value in values.items():
        if name.endswith("_se"):
            continue
        array = value if isinstance(value, xr.DataArray) else xr.DataArray(float(value))
        if array.dtype.kind not in "fiub" or array.size > MOST_NUMBERS:
            continue
        found |= _spread(visible(str(name)), array)
    return found


def _spread(name: str, array: xr.DataArray) -> dict[str, float]:
    if "seed" in array.dims:
        array = array.mean("seed")
    if array.ndim == 0:
        return {name: float(array)}
    labels = {
        str(dim): array.coords[dim].values.tolist() if dim in array.coords else list(range(count))
        for dim, count in array.sizes.items()
    }
    found = {}
    for place in product(*(range(n) for n in array.shape)):
        words = [group_name(labels[dim][i]) for dim, i in zip(labels, place, strict=True)]
        found[f"{name} of {', '.join(words)}"] = float(np.asarray(array.values[place]))
    if array.dims == ("group",) and array.size == 2:
        a, b = (group_name(one) for one in labels["group"])
        found[f"{name} of {a} minus {b}"] = float(array.values[0] - array.values[1])
    return found


#: Failures that are told, and runs of one square that can be opened.
TOLD, OPENED = 20, 12


def study_rows(root: str) -> list[dict[str, Any]]:
    """Every study below the folder with its status, or the sentence that says why it cannot be read."""
    rows = []
    for address, path in study_folder(Path(root)).items():
        row: dict[str, Any] = {"study": address, "name": name_below(path, Path(root).resolve())}
        try:
            study = stored_study(path)
            row |= {
                "function": visible(study.reference.text),
                "status": str(status_of(study.all_cells, study.places, None)),
            }
        except Exception as error:  # one bad file never hides the others
            row["error"] = visible(str(error).replace(str(Path(root).resolve()), ""))
        rows.append(row)
    return rows


def study_answers(root: str, study: str, across: str, up: str, response: str) -> dict[str, Any]:
    """One study: status, failures, and over two of its factors the state and the mean of a number in every square."""
    place, found = Path(root).resolve(), _found(root, study)
    status = status_of(found.all_cells, found.places, None)
    table, read, complete = study_numbers(place, found)
    names = sorted(str(name) for name in table.data_vars)
    chosen = response if response in names else first_response(names)
    axes = _axes(found, across, up)
    squares = _squares(found, axes, place)
    if chosen is not None:
        grid = table[chosen].mean([dim for dim in table[chosen].dims if dim not in axes])
        for square in squares:
            value = float(grid.values[tuple(square["at"][axes.index(str(dim))] for dim in grid.dims)])
            square["value"] = value if np.isfinite(value) else None
    told = {
        "name": study,
        "status": status.to_json(),
        "sentence": str(status),
        "reading": None if read == complete else f"{read} of {complete} complete cells read so far",
        "factors": [
            {"name": name, "levels": [visible(text(one)) for one in levels]} for name, levels in found.levels.items()
        ],
        "seeds": len(found.all_seeds or ()),
        "axes": axes,
        "responses": names,
        "response": chosen,
        "squares": squares,
        "failures": _failures(found, place),
    }
    return {**told, "version": hashlib.blake2b(json.dumps(told).encode(), digest_size=8).hexdigest()}


def study_shares(root: str, study: str, response: str) -> dict[str, Any]:
    """How much of the variance of one number each factor, each pair and chance explain."""
    table, read, complete = study_numbers(Path(root).resolve(), _found(root, study))
    if read < complete:
        raise ValueError(f"{read} of {complete} complete cells are read so far.")
    if response not in table:
        raise ValueError("There is no such number in this study.")
    found = shares(table[response], draws=200, permutations=99)
    rows = [
        {"term": visible(row.term), "share": row.share, "low": row.low, "high": row.high, "p": row.p}
        for row in found.rows
    ]
    return {"sentence": visible(str(found)), "level": found.level, "rows": rows}


def first_response(names: list[str]) -> str | None:
    """The number that is shown before one is chosen: a gap of losses or errors, else a loss or an error.

    >>> first_response(["calibration_gap", "error", "loss of a", "loss of a minus b"])
    'loss of a minus b'
    """
    gaps = [name for name in names if " minus " in name or (name.endswith("gap") and name != "calibration_gap")]
    losses = [name for name in names if "loss" in name]
    errors = [name for name in names if "error" in name]
    both = [[name for name in gaps if name in some] for some in (losses, errors)]
    named = [name for name in gaps if name == "gap"]
    return next((some[0] for some in (named, *both, gaps, losses, errors, names) if some), None)


def _found(root: str, study: str) -> Study:
    there = study_folder(Path(root))
    if study not in there:
        raise ValueError("This study is no longer there.")
    return stored_study(there[study])


def _axes(study: Study, across: str, up: str) -> list[str]:
    """Two different factors, or the only one: those asked for, else the first ones with several levels."""
    several = sorted(study.levels, key=lambda name: len(study.levels[name]) < 2)
    first = across if across in study.levels else several[0]
    others = [name for name in several if name != first]
    return [first, up if up in others else others[0]] if others else [first]


def _squares(study: Study, axes: list[str], root: Path) -> list[dict[str, Any]]:
    states = _states(study)
    places = [{text(value): i for i, value in enumerate(study.levels[name])} for name in axes]
    found: dict[tuple[int, ...], Counter[str]] = {}
    runs: dict[tuple[int, ...], list[str]] = {}
    for cell in study.all_cells:
        at = tuple(place[text(cell.settings[name])] for place, name in zip(places, axes, strict=True))
        state = states[cell.key]
        found.setdefault(at, Counter())[state] += 1
        if state == "done" and len(runs.setdefault(at, [])) < OPENED:
            runs[at].append(address_of(bytes(study.places.result(cell.key).relative_to(root).as_posix(), "utf-8")))
    return [{"at": list(at), "states": dict(count), "runs": runs.get(at, [])} for at, count in found.items()]


def _states(study: Study) -> dict[str, str]:
    done, failed, work = (study.places.keys(part) for part in (CELLS, FAILED, WORK))

    def state(cell: Cell) -> str:
        if cell.key in done:
            return "done"
        if cell.key in work and live_writer(study.places.lock(cell.key)) is not None:
            return "running"
        return "failed" if cell.key in failed else "left"

    return {cell.key: state(cell) for cell in study.all_cells}


def _failures(study: Study, root: Path) -> list[str]:
    failed = study.places.keys(FAILED) - study.places.keys(CELLS)
    found: list[str] = []
    for cell in study.all_cells:
        path = study.places.failure(cell.key)
        if cell.key in failed and len(found) < TOLD and is_inside(path, root):
            try:
                found.append(visible(str(Failure.read(path)))[:500])
            except (ValueError, OSError):
                found.append(f"{visible(str(cell))}: the file that says why cannot be read")
    return found
