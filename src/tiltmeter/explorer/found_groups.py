"""Found groups: groups nobody named in a run of the folder, in the words of a table of the folder, and how to go on."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tiltmeter.data.any_frame import any_frame
from tiltmeter.discover.discover import discover
from tiltmeter.discover.discovery import Discovery
from tiltmeter.explorer.run_judgement import loaded
from tiltmeter.explorer.run_rows import paths_of_runs
from tiltmeter.explorer.tables import table_path
from tiltmeter.record import stack
from tiltmeter.shown_text import percent, visible

#: What pandas calls the reading of a table.
READERS = {".csv": "read_csv", ".parquet": "read_parquet", ".feather": "read_feather"}


def groups_found(
    root: str, runs: Sequence[str], table: str, without: Sequence[str], tell: Callable[[Any], None]
) -> dict[str, Any]:
    """The groups of `tm.discover` in these seeds of one training, and the lines that find them again elsewhere."""
    paths = paths_of_runs(root, runs)
    file = table_path(root, table)
    tell("reading the table")
    frame = any_frame(file)
    unknown = [name for name in without if name not in frame.columns]
    if unknown:
        raise ValueError(f"The table has no column {unknown[0]!r} to leave out.")
    several = [loaded(Path(root), path) for path in paths]
    tell("searching, and judging what is found on other points")
    discovery = discover(several[0] if len(several) == 1 else stack(several), frame.drop(columns=list(without)))
    return {
        "claim": visible(discovery.claim),
        "licence": visible(discovery.licence),
        "groups": _rows(discovery),
        "python": visible(python_lines(paths, file, without)) if discovery.clear else "",
        "shell": visible(shell_lines(paths[0], file, without)) if discovery.clear and len(paths) == 1 else "",
    }


def _rows(discovery: Discovery) -> list[dict[str, Any]]:
    return [
        {
            "name": visible(group.name),
            "verdict": visible(discovery.verdict_text(group)),
            "points": group.points,
            "share": percent(group.share),
            "loss": group.loss,
            "loss_of_others": group.loss_of_others,
        }
        for group in discovery.groups
    ]


def python_lines(runs: Sequence[Path], table: Path, without: Sequence[str]) -> str:
    """A program that finds the same groups and writes the table with one more column, to train, forecast or advise on.

    >>> print(python_lines([Path("runs/mine")], Path("people.csv"), ["label"]))
    import pandas as pd
    import tiltmeter as tm
    <BLANKLINE>
    people = pd.read_csv('people.csv')
    discovery = tm.discover(tm.load('runs/mine'), people.drop(columns=['label']))
    people["found"] = discovery.group(people)
    people.to_csv("found.csv", index=False)
    """
    loads = [f"tm.load({str(run)!r})" for run in runs]
    run = loads[0] if len(loads) == 1 else f"tm.record.stack([{', '.join(loads)}])"
    rows = f"people.drop(columns={list(without)!r})" if without else "people"
    return "\n".join(
        (
            "import pandas as pd",
            "import tiltmeter as tm",
            "",
            f"people = pd.{READERS[table.suffix.lower()]}({str(table)!r})",
            f"discovery = tm.discover({run}, {rows})",
            'people["found"] = discovery.group(people)',
            'people.to_csv("found.csv", index=False)',
        )
    )


def shell_lines(run: Path, table: Path, without: Sequence[str]) -> str:
    """Commands that find the same groups, keep them, and write the report of the run in these groups.

    >>> print(shell_lines(Path("runs/mine"), Path("people.csv"), ["my label"]))
    tiltmeter discover runs/mine --table people.csv '--without=my label' --to groups.json --run-to groups
    tiltmeter report groups --groups groups.json --out groups.html
    """
    left = [f"--without={name}" for name in without]
    words = ["tiltmeter", "discover", str(run), "--table", str(table), *left]
    words += ["--to", "groups.json", "--run-to", "groups"]
    return f"{shlex.join(words)}\ntiltmeter report groups --groups groups.json --out groups.html"
