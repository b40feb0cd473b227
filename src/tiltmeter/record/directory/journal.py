"""Journal: what the lines of `curves.jsonl` mean.

Every line is an object with a `kind`:

- `look`: `time`, `values` by curve and, for curves not seen before, their `layouts`, in the same line, so that
  a torn line leaves nothing behind that it explains;
- `curve`: a whole curve at once: `name`, `layout` (with time), `values`;
- `array`: a variable of a dataset: `name`, `layout`, `values`; `coords`: the coordinates of a dataset;
- `diverged`: `at`, the time of divergence per seed or grid point.

Values are nested lists, or `{"array": "file.npy"}` for large ones, whose file was complete before the line was written.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from tiltmeter.record.directory.atomic_files import read_array, write_array
from tiltmeter.record.directory.column import Problem
from tiltmeter.record.directory.contents import Contents
from tiltmeter.record.directory.layout import Layout, checked
from tiltmeter.record.directory.lines import read_lines
from tiltmeter.record.labelled import values_from_json, values_to_json

CURVES = "curves.jsonl"
ARRAYS = "arrays"

#: Readings with more numbers than this go to a file of their own.
INLINE = 1024

_FILE = re.compile(r"[\w-]+\.npy", re.ASCII)


def store(directory: Path, start: int, slot: int, values: np.ndarray) -> Any:
    """Values as they stand in a line. Large ones are written to a file named after the byte where the line starts:
    unique among the lines that exist, free again if this one fails."""
    if values.size <= INLINE:
        return values_to_json(values)
    name = f"{start:012d}-{slot}.npy"
    (directory / ARRAYS).mkdir(exist_ok=True)
    write_array(directory / ARRAYS / name, values)
    return {"array": name}


def read(directory: Path, problem: Problem) -> tuple[Contents, int]:
    """Everything in `curves.jsonl`, and the byte at which its whole lines end; damage goes to `problem`."""
    if not (directory / CURVES).exists():
        raise ValueError(f"{directory} is damaged: its {CURVES} is missing.")
    contents, whole = Contents(problem), 0
    for number, end, entry in read_lines(directory / CURVES):
        whole = end
        try:
            if isinstance(entry, ValueError):
                raise entry
            _add(contents, directory, entry, number)
        except BadLine:
            raise  # it names its line already, which may be an earlier one
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            problem(number, f"{error} is missing" if isinstance(error, KeyError) else str(error))
    return contents, whole


class BadLine(ValueError):
    """Damage that is not the torn end of a file; the sentence names file and line."""


def stop(directory: Path) -> Problem:
    """Makes damage a `BadLine`."""

    def raise_it(line: int, fact: str) -> None:
        raise BadLine(f"{directory / CURVES}, line {line}: {fact.rstrip('.')}.") from None

    return raise_it


def _add(contents: Contents, directory: Path, entry: Any, number: int) -> None:
    if not isinstance(entry, dict):
        raise ValueError("a line should be an object")
    kind = entry.get("kind")
    if kind == "look":
        _add_look(contents, directory, entry, number)
    elif kind in ("curve", "array"):
        if not isinstance(entry["name"], str):
            raise ValueError(f"{entry['name']!r} is not a name")
        layout = checked(entry["layout"])
        values = entry["values"]
        if not _in_file(values):
            values = values_from_json(values, layout["dtype"], layout["shape"])
        add = contents.curve if kind == "curve" else contents.array
        add(entry["name"], layout, _fetch(directory, values, layout))
    elif kind == "coords":
        contents.coords(entry["coords"], entry["sizes"])
    elif kind == "diverged":
        contents.diverge(entry["at"])
    else:
        raise ValueError(f"a line of kind {kind!r} is not known")


def _add_look(contents: Contents, directory: Path, entry: dict[str, Any], number: int) -> None:
    time, values = entry["time"], entry["values"]
    if isinstance(time, bool) or not isinstance(time, (int, float)) or not isinstance(values, dict):
        raise ValueError("a look should have a time and values")
    fresh = {name: checked(layout) for name, layout in entry.get("layouts", {}).items()}
    if any("time" in layout["dims"] for layout in fresh.values()):
        raise ValueError("a reading is taken at one time and cannot have a `time` dimension")
    found = {name: _fetch(directory, value, contents.layout(name, fresh)) for name, value in values.items()}
    contents.look(time, fresh, found, number)


def _in_file(values: Any) -> bool:
    return isinstance(values, dict)


def _fetch(directory: Path, values: Any, layout: Layout) -> Any:
    if not _in_file(values):
        return values
    name = values["array"]
    if not isinstance(name, str) or not _FILE.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of an array file")
    return read_array(directory / ARRAYS / name, layout["dtype"], tuple(layout["shape"]))
