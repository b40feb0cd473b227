"""Tables: the files of the folder that could be trained on, what they are probably about, and a task made of one."""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from tiltmeter.data.any_frame import any_frame
from tiltmeter.data.training_file import TableTask, missing_values, table_task, training_file
from tiltmeter.explorer.run_rows import address_of, addressed, files_below, name_below
from tiltmeter.explorer.settings import LARGEST_TABLE
from tiltmeter.shown_text import visible

ENDINGS = (".csv", ".parquet", ".feather")
#: The most tables that are listed.
MOST = 200


def free_name(folder: Path, given: str) -> str:
    """A name for a table that somebody sent: letters, digits, points and dashes, and no file that is there."""
    name = re.sub(r"[^\w.-]+", "-", Path(given).name, flags=re.ASCII).lstrip(".-")[-80:]
    if not name.lower().endswith(ENDINGS) or name.lower() in ENDINGS:
        raise ValueError(f"A table should be a file that ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}.")
    return unused(folder, name)


def unused(folder: Path, name: str) -> str:
    """The name, with a number before its ending if it is taken."""
    stem, ending = os.path.splitext(name)
    number = 1
    while os.path.lexists(folder / name):
        number += 1
        name = f"{stem}-{number}{ending}"
    return name


def table_rows(root: str) -> list[dict[str, str]]:
    """Every table below the folder that is small enough to be read here."""
    place = Path(root).resolve()
    return [{"table": address, "name": name_below(path, place)} for address, path in _tables(place).items()]


def table_columns(
    root: str, table: str, label: str | None = None, positive: str | None = None, group: str | None = None
) -> dict[str, Any]:
    """What the table is probably about, and what else could be chosen."""
    path = table_path(root, table)
    frame = any_frame(path)
    task = table_task(frame, label, positive, group)
    return {
        "name": visible(path.name),
        "rows": len(frame),
        "columns": len(frame.columns),
        "missing": sum(missing_values(frame).values()),
        "label": task.label,
        "positive": None if task.positive is None else str(task.positive),
        "group": task.group,
        "kind": task.kind,
        "guessed": list(task.guessed),
        "choices": {name: [str(value) for value in values] for name, values in task.choices.items()},
        "sizes": _sizes(frame, task),
    }


def table_written(
    root: str,
    table: str,
    label: str | None = None,
    positive: str | None = None,
    group: str | None = None,
    kind: Literal["benefit", "burden"] | None = None,
) -> dict[str, str]:
    """Write the training file of the table beside it; the name under which the forecast page finds it."""
    place, path = Path(root).resolve(), table_path(root, table)
    frame = any_frame(path)
    if kind not in (None, "benefit", "burden"):
        raise ValueError("`kind` should be benefit or burden.")
    task = table_task(frame, label, positive, group, kind)
    text = training_file(task, frame, path.name, path.name)
    file = path.with_name(unused(path.parent, f"{path.stem}.toml"))
    with file.open("x", encoding="utf-8") as opened:
        opened.write(text)
    return {"source": f"file/{address_of(os.fsencode(file.relative_to(place).as_posix()))}"}


def _sizes(frame: Any, task: TableTask) -> list[dict[str, Any]]:
    """Of every group how many rows there are, and which share of them has the positive label."""
    found = []
    for group, rows in frame.groupby(task.group, sort=True):
        labels = rows[task.label]
        share = None if task.positive is None else float((labels == task.positive).mean())
        found.append({"group": visible(str(group)), "rows": len(rows), "positive": share})
    return found


def table_path(root: str, table: str) -> Path:
    """The file of a table, by its name in addresses."""
    path = _tables(Path(root).resolve()).get(table)
    if path is None:
        raise ValueError("This table is no longer there.")
    return path


def _tables(root: Path) -> dict[str, Path]:
    return addressed(root, islice(files_below(root, ENDINGS, LARGEST_TABLE), MOST))
