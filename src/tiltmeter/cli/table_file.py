"""A table, or a TOML file: both as the tables of a TOML file, the guesses about a table said and kept on request."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from tiltmeter.cli.train_config import build_data, read_config
from tiltmeter.recipe.table import recipe_from_table

if TYPE_CHECKING:
    from tiltmeter.preview.preview import Preview

#: Files that hold a table.
TABLES = (".csv", ".parquet", ".feather")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Guesses:
    """What a table does not say itself; for a .csv, .parquet or .feather file only."""

    label: Annotated[str | None, Parameter(help="Of a table: the column to predict (default: a guess).")] = None
    positive: Annotated[str | None, Parameter(help="Of a table: the label that is a yes (default: a guess).")] = None
    group: Annotated[str | None, Parameter(help="Of a table: the column of groups (default: a guess).")] = None
    write_toml: Annotated[Path | None, Parameter(help="Of a table: keep all guesses in this new file.")] = None

    @property
    def given(self) -> tuple[str, ...]:
        """The options that were given."""
        names = {"label": "--label", "positive": "--positive", "group": "--group", "write_toml": "--write-toml"}
        return tuple(word for name, word in names.items() if getattr(self, name) is not None)


@dataclass(frozen=True, eq=False)
class Task:
    """The tables of a file with the folder that its paths start from, and a line about what was guessed ("": nothing).

    `name` is how the file is named in a next command.
    """

    tables: Mapping[str, dict[str, Any]]
    folder: Path
    name: str
    guessed: str = ""


def read_task(file: Path, guesses: Guesses = Guesses()) -> Task:
    """The task of a TOML file; of a table, what `tiltmeter init` would write about it."""
    if file.suffix.lower() not in TABLES:
        if guesses.given:
            raise ValueError(f"{guesses.given[0]} is about a table. Found {file.name}, which says it itself.")
        return Task(read_config(file), file.parent, str(file))
    from tiltmeter.data.any_frame import any_frame
    from tiltmeter.data.training_file import table_task, training_file

    kept = guesses.write_toml
    if kept is not None and kept.exists():
        raise FileExistsError(f"{kept} already exists and is never overwritten. Choose a new name with --write-toml.")
    if kept is not None and not kept.parent.is_dir():
        raise FileNotFoundError(f"--write-toml should lie in an existing folder. Found none at {kept.parent}.")
    if not file.is_file():
        raise FileNotFoundError(f"No file {file}.")
    frame = any_frame(file)
    task = table_task(frame, guesses.label, guesses.positive, guesses.group)
    if kept is not None:
        source = os.path.relpath(file, kept.parent).replace(os.sep, "/")
        kept.write_text(training_file(task, frame, source, file.name), encoding="utf-8")
    with tempfile.TemporaryDirectory() as place:
        written = Path(place) / "table.toml"
        written.write_text(training_file(task, frame, file.name, file.name), encoding="utf-8")
        tables = read_config(written)
    told = {"label": task.label, "positive label": task.positive, "group": task.group, "question": task.kind}
    marked = ", ".join(f"{what} {told[what]}" for what in task.guessed if told[what] is not None)
    line = f"Guessed: {marked}." if marked else ""
    if kept is not None:
        line = f"{line} Kept in {kept}: check it.".strip()
    said = {"--label": guesses.label, "--positive": guesses.positive, "--group": guesses.group}
    options = [part for word, value in said.items() if value is not None for part in (word, value)]
    name = str(kept) if kept is not None else shlex.join([str(file), *options])
    return Task(tables, file.parent, name, line)


def previewed(task: Task) -> Preview:
    """The preview of a task. Of the settings it needs loss, weights and proportions; torch is not imported for it."""
    from tiltmeter.preview.preview import preview

    train, held_out = build_data(task.tables, task.folder)
    given = task.tables["training"]
    settings: dict[str, Any] = {"lr": 1.0, "steps": 1}
    settings |= {name: given[name] for name in ("loss", "weights", "proportions", "interventions") if name in given}
    return preview(train, held_out, recipe=recipe_from_table(settings, train.groups))
