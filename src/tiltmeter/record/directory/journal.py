"""Journal: the meaning of the lines of `curves.jsonl`.

Every line is an object with a `kind`, and ends with its checksum `crc`:

- `evaluation`: `time`, `values` by curve and, for curves not seen before, their `layouts`, in the same line, so that
  a torn line leaves nothing behind that it explains; `points` and `point_layouts` say the same of records in `points/`;
- `curve`: a whole curve at once: `name`, `layout` (with time), `values`;
- `points`: all records of one name at once: `name`, `layout` (with time), `file`, `checksums`;
- `array`: a variable of a dataset: `name`, `layout`, `values`; `coords`: the coordinates of a dataset;
- `diverged`: `at`, the time of divergence per seed or grid point;
- `left_out`: `steps` of planned evaluations that were not taken, as (first, last, distance), and the `batch` by which
  that was decided;
- `missing`: `until`, a time before which evaluations were lost, and the run went on without them;
- `rewind`: `to`, after which every evaluation so far is forgotten (null: all).

Values are nested lists, or `{"array": "file.npy", "crc": ...}` for large ones, whose file was complete before the line
was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from tiltmeter.record.contents import Contents, Problem, times_of, usable
from tiltmeter.record.directory.atomic_files import make_folder, read_array, write_array
from tiltmeter.record.directory.lines import PLAIN_LOOK, Block, read_blocks
from tiltmeter.record.labelled import array_from_json, values_from_json, values_to_json
from tiltmeter.record.layout import Layout, Time
from tiltmeter.shown_text import quoted, shortened

CURVES = "curves.jsonl"
ARRAYS = "arrays"

#: Readings with more numbers than this go to a file of their own.
INLINE = 1024

_FILE = re.compile(r"[\w-]+\.npy", re.ASCII)
_POINT_FILE = re.compile(r"[0-9]{1,9}\.bin", re.ASCII)
_CHECKSUM = re.compile(r"[0-9a-f]{8}", re.ASCII)


def store(directory: Path, start: int, slot: int, values: np.ndarray) -> Any:
    """Values as they stand in a line. Large ones are written to a file named after the byte where the line starts:
    unique among the lines that exist, and free again if this one fails."""
    if values.size <= INLINE:
        return values_to_json(values)
    name = f"{start:012d}-{slot}.npy"
    make_folder(directory / ARRAYS)
    return {"array": name, "crc": f"{write_array(directory / ARRAYS / name, values):08x}"}


class StopReading(Exception):
    """Raised by a `problem` to read no further than the line before."""


def read_on(
    contents: Contents, directory: Path, problem: Problem, lines: int = 0, whole: int = 0, most: int | None = None
) -> tuple[int, int]:
    """Add all after the first `lines` lines, which end at byte `whole`; the same two numbers afterwards.

    What does not verify goes to `problem`, with the number of its line; lines after `most` are not read.
    """
    try:
        for block in read_blocks(directory / CURVES, lines + 1, whole):
            for first, entries in _alike(block):
                if most is not None:
                    entries = entries[: max(0, most - first + 1)]
                    if not entries:
                        return lines, whole
                if not _add_plain_evaluations(contents, entries, first):
                    for number, entry in enumerate(entries, first):
                        _add_one(contents, directory, entry, number, problem)
                        lines, whole = number, block.ends[number - block.first]
                lines = first + len(entries) - 1
                whole = block.ends[lines - block.first]
    except StopReading:
        pass
    return lines, whole


def _add_one(contents: Contents, directory: Path, entry: Any, number: int, problem: Problem) -> None:
    try:
        if isinstance(entry, ValueError):
            raise entry
        _add(contents, directory, entry, number)
    except BadLine:
        raise  # it already names its line, which may be an earlier one
    except KeyError as error:
        problem(number, f"{shortened(str(error))} is missing")
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError, MemoryError) as error:
        problem(number, shortened(str(error)))


class BadLine(ValueError):
    """Damage that is not the torn end of a file; the sentence names file and line."""


def stop(directory: Path) -> Problem:
    """Raise damage as a `BadLine`."""

    def raise_it(line: int, fact: str) -> None:
        raise BadLine(f"{directory / CURVES}, line {line}: {fact.rstrip('.')}.") from None

    return raise_it


def _alike(block: Block) -> Iterator[tuple[int, list[Any]]]:
    """Yield consecutive plain looks at the same curves together, and all other lines one by one."""
    if _all_alike(block.entries):
        yield block.first, block.entries
        return
    first = block.first
    for _, some in groupby(enumerate(block.entries), lambda pair: _curves_of(pair[1]) or pair[0]):
        entries = [entry for _, entry in some]
        yield first, entries
        first += len(entries)


def _all_alike(entries: list[Any]) -> bool:
    curves = _curves_of(entries[0])
    if curves is None or set(map(type, entries)) != {dict} or set(map(len, entries)) != {len(PLAIN_LOOK)}:
        return False
    try:
        values = list(map(itemgetter("values"), entries))
        return {"evaluation"} == set(map(itemgetter("kind"), entries)) and {curves} == set(map(tuple, values))
    except (KeyError, TypeError):
        return False


def _curves_of(entry: Any) -> tuple[str, ...] | None:
    if type(entry) is dict and entry.keys() == PLAIN_LOOK and entry["kind"] == "evaluation":
        values = entry["values"]
        return tuple(values) if type(values) is dict else None
    return None


def _add_plain_evaluations(contents: Contents, entries: list[Any], first: int) -> bool:
    if _curves_of(entries[0]) is None:
        return False
    try:
        values = list(map(itemgetter("values"), entries))
        columns = {name: list(map(itemgetter(name), values)) for name in values[0]}
        times = list(map(itemgetter("time"), entries))
    except (KeyError, TypeError):
        return False
    if any(dict in set(map(type, readings)) for readings in columns.values()):
        return False
    return contents.evaluations_on_end(times, columns, first)


def _add(contents: Contents, directory: Path, entry: Any, number: int) -> None:
    if not isinstance(entry, dict):
        raise ValueError("a line should be an object")
    kind = entry.get("kind")
    if kind == "evaluation":
        _add_evaluation(contents, directory, entry, number)
    elif kind in ("curve", "array"):
        name, layout, values = _name(entry["name"]), Layout.from_json(entry["layout"]), entry["values"]
        if not _in_file(values):
            values = values_from_json(values, layout.dtype, layout.shape)
        add = contents.curve if kind == "curve" else contents.array
        add(name, layout, _fetch(directory, values, layout))
    elif kind == "points":
        _add_points(contents, entry, number)
    elif kind == "coords":
        contents.coords(entry["coords"], entry["sizes"])
    elif kind == "diverged":
        contents.diverge(array_from_json(entry["at"]))
    elif kind == "left_out":
        contents.leave_out(_from_ranges(entry["steps"]), None if entry["batch"] is None else _batch(entry["batch"]))
    elif kind == "missing":
        contents.missing_until = _time(entry["until"])
    elif kind == "rewind":
        contents.rewind(None if entry["to"] is None else _time(entry["to"]))
    else:
        raise ValueError(f"a line of kind {quoted(kind)} is not known")


def _add_evaluation(contents: Contents, directory: Path, entry: dict[str, Any], number: int) -> None:
    time, values = _time(entry["time"]), entry["values"]
    if not isinstance(values, dict):
        raise ValueError("an evaluation should have a time and values")
    fresh = {name: Layout.from_json(layout) for name, layout in _object(entry.get("layouts", {})).items()}
    if any("time" in layout.dims for layout in fresh.values()):
        raise ValueError("a reading is taken at one time and cannot have a `time` dimension")
    found = {name: _fetch(directory, value, contents.layout(name, fresh)) for name, value in values.items()}
    kept = {name: _record(value) for name, value in _object(entry.get("points", {})).items()}
    new = _object(entry.get("point_layouts", {}))
    for name in kept:
        if name not in contents.points and name not in new:
            raise ValueError(f"the layout of the points {quoted(name)} is not known")
    described = {name: (Layout.from_json(_object(said)["layout"]), _file(said)) for name, said in new.items()}
    contents.evaluate(time, fresh, found, number)
    for name, (layout, file) in described.items():
        contents.point_column(name, layout, file)
    for name, (record, checksum) in kept.items():
        contents.points[name].extend((time,), (record,), (checksum,), number)


def _add_points(contents: Contents, entry: dict[str, Any], number: int) -> None:
    name, layout, checksums = _name(entry["name"]), Layout.from_json(entry["layout"]), entry["checksums"]
    times = times_of(layout)
    if times is None or not isinstance(checksums, list):
        raise ValueError(f"the points of {quoted(name)} should have times and checksums")
    if not len(times) == len(checksums) == layout.shape[0]:
        raise ValueError(f"the points of {quoted(name)} should have one checksum for each time")
    times = [_time(time) for time in times]
    if any(b <= a for a, b in pairwise(times)):
        raise ValueError(f"the times of the points {quoted(name)} should increase")
    found = [_checksum(text) for text in checksums]
    contents.point_column(name, layout.without_time(), _file(entry)).extend(times, range(len(times)), found, number)


def _in_file(values: Any) -> bool:
    return isinstance(values, dict)


def _fetch(directory: Path, values: Any, layout: Layout) -> Any:
    if not _in_file(values):
        return values
    name = values["array"]
    if not isinstance(name, str) or not _FILE.fullmatch(name):
        raise ValueError(f"{quoted(name)} is not the name of an array file")
    checksum = _checksum(values["crc"]) if "crc" in values else None
    return read_array(directory / ARRAYS / name, layout.dtype, layout.shape, checksum)


def _time(value: Any) -> Time:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("an evaluation should have a time and values")
    if not usable(value):
        raise ValueError(f"{quoted(value)} is not a time")
    return value


def as_ranges(times: list[Time]) -> list[list[Time]]:
    """Increasing times as (first, last, distance).

    >>> as_ranges([10, 20, 30, 31])
    [[10, 30, 10], [31, 31, 1]]
    """
    found: list[list[Time]] = []
    for time in times:
        if found and (found[-1][0] == found[-1][1] or time - found[-1][1] == found[-1][2]):
            found[-1][1:] = [time, time - found[-1][1]]
        else:
            found.append([time, time, 1])
    return found


#: More times than this in one line are no plan of anybody's.
MOST_LEFT_OUT = 10**7


def _from_ranges(value: Any) -> list[Time]:
    found: list[Time] = []
    for first, last, distance in value:
        whole = all(type(one) is int and 0 <= one < 2**53 for one in (first, last, distance))
        if not whole or last < first or distance < 1 or (last - first) // distance > MOST_LEFT_OUT - len(found):
            raise ValueError(f"{quoted([first, last, distance])} are not steps")
        found += range(first, last + 1, distance)
    return found


def _batch(value: Any) -> int:
    if type(value) is not int or not 0 < value < 2**53:
        raise ValueError(f"{quoted(value)} is not the size of a batch")
    return value


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{quoted(value)} is not a name")
    return value


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{quoted(value)} should be an object")
    return value


def _record(value: Any) -> tuple[int, int]:
    record = _object(value)["record"]
    if isinstance(record, bool) or not isinstance(record, int) or not 0 <= record < 2**40:
        raise ValueError(f"{quoted(record)} is not the number of a record")
    return record, _checksum(value["crc"])


def _file(value: dict[str, Any]) -> str:
    name = value["file"]
    if not isinstance(name, str) or not _POINT_FILE.fullmatch(name):
        raise ValueError(f"{quoted(name)} is not the name of a file of points")
    return name


def _checksum(text: Any) -> int:
    if not isinstance(text, str) or not _CHECKSUM.fullmatch(text):
        raise ValueError(f"{quoted(text)} is not a checksum")
    return int(text, 16)
