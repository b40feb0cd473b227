"""`tiltmeter init`: a commented TOML file for a table, ready for `tiltmeter train`."""

from __future__ import annotations

import os
from pathlib import Path

from tiltmeter.cli.terminal import Json, print_json


def init(
    table: Path,
    *,
    to: Path = Path("training.toml"),
    label: str | None = None,
    positive: str | None = None,
    group: str | None = None,
    json: Json = False,
) -> None:
    """Write a commented TOML file that `tiltmeter forecast` and `tiltmeter train` read, for your table.

    Parameters
    ----------
    table
        A .csv, .parquet or .feather file.
    to
        The new file.
    label
        The column to predict (default: a guess, which the file marks as one).
    positive
        The label that is a yes of the model, of two labels (default: a guess, which the file marks as one).
    group
        The column of groups (default: a guess, which the file marks as one).
    """
    from tiltmeter.data.any_frame import any_frame
    from tiltmeter.data.training_file import missing_values, table_task, training_file

    if to.exists():
        raise FileExistsError(f"{to} already exists and is never overwritten. Choose a new name with --to.")
    if not to.parent.is_dir():
        raise FileNotFoundError(f"--to should lie in an existing folder. Found none at {to.parent}.")
    frame = any_frame(table)
    task = table_task(frame, label, positive, group)
    source = os.path.relpath(table, to.parent).replace(os.sep, "/")
    to.write_text(training_file(task, frame, source, table.name), encoding="utf-8")
    chosen = {"label": task.label, "positive": task.positive, "group": task.group}
    if json:
        print_json({"file": str(to), **chosen, "missing": missing_values(frame)})
        return
    marked = f" (guessed: {', '.join(task.guessed)})" if task.guessed else ""
    print(f"Wrote {to}: {', '.join(f'{what} {value}' for what, value in chosen.items() if value is not None)}{marked}.")
    print(f"Next: tiltmeter forecast {to}")
    print(f"      tiltmeter train {to} --to runs/first")
    print("      tiltmeter report runs/first")
