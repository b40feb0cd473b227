"""Study answers: how a study stands, its cells over two factors, and what explains a number of it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from tiltmeter.analysis.variance.shares import shares
from tiltmeter.explorer.run_folder import address_of, is_inside
from tiltmeter.explorer.stored_study import StoredStudy, study_folder
from tiltmeter.explorer.study_numbers import study_numbers
from tiltmeter.record.directory.lock import live_writer
from tiltmeter.study.cell import Cell
from tiltmeter.study.failure import Failure
from tiltmeter.study.grid import text
from tiltmeter.study.places import CELLS, FAILED, WORK
from tiltmeter.study.status import status_of
from tiltmeter.visible_text import visible

#: Failures that are told, and runs of one square that can be opened.
TOLD, OPENED = 20, 12


def study_rows(root: str) -> list[dict[str, Any]]:
    """Every study below the folder with its status, or the sentence that says why it cannot be read."""
    rows = []
    for address, path in study_folder(Path(root)).items():
        name = visible(path.relative_to(Path(root).resolve()).as_posix()) if path != Path(root).resolve() else path.name
        row: dict[str, Any] = {"study": address, "name": name}
        try:
            study = StoredStudy.read(path)
            row |= {"function": visible(study.function), "status": str(status_of(study.all_cells, study.places, None))}
        except (ValueError, TypeError, KeyError, OSError) as error:
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
            {"name": name, "levels": [visible(text(one)) for one in levels]} for name, levels in found.factors.items()
        ],
        "seeds": 0 if found.seeds is None else len(found.seeds),
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


def _found(root: str, study: str) -> StoredStudy:
    there = study_folder(Path(root))
    if study not in there:
        raise ValueError("This study is no longer there.")
    return StoredStudy.read(there[study])


def _axes(study: StoredStudy, across: str, up: str) -> list[str]:
    """Two different factors, or the only one: those asked for, else the first ones with several levels."""
    several = sorted(study.factors, key=lambda name: len(study.factors[name]) < 2)
    first = across if across in study.factors else several[0]
    others = [name for name in several if name != first]
    return [first, up if up in others else others[0]] if others else [first]


def _squares(study: StoredStudy, axes: list[str], root: Path) -> list[dict[str, Any]]:
    states = _states(study)
    places = [{text(value): i for i, value in enumerate(study.factors[name])} for name in axes]
    found: dict[tuple[int, ...], Counter[str]] = {}
    runs: dict[tuple[int, ...], list[str]] = {}
    for cell in study.all_cells:
        at = tuple(place[text(cell.settings[name])] for place, name in zip(places, axes, strict=True))
        state = states[cell.key]
        found.setdefault(at, Counter())[state] += 1
        if state == "done" and len(runs.setdefault(at, [])) < OPENED:
            runs[at].append(address_of(bytes(study.places.result(cell.key).relative_to(root).as_posix(), "utf-8")))
    return [{"at": list(at), "states": dict(count), "runs": runs.get(at, [])} for at, count in found.items()]


def _states(study: StoredStudy) -> dict[str, str]:
    done, failed, work = (study.places.keys(part) for part in (CELLS, FAILED, WORK))

    def state(cell: Cell) -> str:
        if cell.key in done:
            return "done"
        if cell.key in work and live_writer(study.places.lock(cell.key)) is not None:
            return "running"
        return "failed" if cell.key in failed else "left"

    return {cell.key: state(cell) for cell in study.all_cells}


def _failures(study: StoredStudy, root: Path) -> list[str]:
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
