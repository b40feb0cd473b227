"""to_csv: a run as a table that any program can read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tiltmeter.export.table import plain_table, target
from tiltmeter.record import Trajectory
from tiltmeter.visible_text import visible


def to_csv(run: Trajectory, path: str | os.PathLike[str]) -> Path:
    """Write every value of a run as one row: curve, time, the labels of its dimensions, value.

    >>> from tempfile import TemporaryDirectory
    >>> from tiltmeter import cases, predict
    >>> run = predict(*cases.centred_crossing(), curves=("loss",))
    >>> with TemporaryDirectory() as folder:
    ...     print(to_csv(run, f"{folder}/run.csv").read_text().splitlines()[0])
    curve,time,group,value

    Numbers are written with full precision. A label that a spreadsheet would take for a formula gets an apostrophe in
    front. The origin of the run is not in the file: keep the run directory.
    """
    place = target(path, ".csv")
    table = plain_table(run)
    for name in table.columns:
        if table[name].dtype.kind not in "fiub":
            table[name] = table[name].map(no_formula, na_action="ignore")
    table.rename(columns=no_formula).to_csv(place, index=False, lineterminator="\n")
    return place


def no_formula(label: Any) -> Any:
    """A text that no spreadsheet computes: an apostrophe stands before = + - @ and what follows them.

    >>> no_formula("=1+1"), no_formula("-"), no_formula("-2.5"), no_formula(3)
    ("'=1+1", '-', '-2.5', 3)

    A single sign, as in the names of two groups "+" and "-", is no formula, nor is a number.
    """
    if not isinstance(label, str):
        return label
    text = visible(label)
    stripped = text.lstrip()
    if len(stripped) < 2 or stripped[0] not in "=+-@":
        return text
    try:
        float(stripped)
    except ValueError:
        return f"'{text}"
    return text
