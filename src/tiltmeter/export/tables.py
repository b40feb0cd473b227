"""Tables: a run as CSV, Parquet or LaTeX, in which every label is a number or text."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tiltmeter.record import Trajectory
from tiltmeter.record.directory.atomic_files import write_atomically, written_aside
from tiltmeter.shown_text import visible


def plain_label(label: Hashable) -> Hashable:
    """A label that any program understands; the parts of an intersection of attributes (a tuple) are joined.

    >>> plain_label(("woman", "old")), plain_label(3)
    ('woman & old', 3)
    """
    return " & ".join(map(str, label)) if isinstance(label, tuple) else label


def needed(module: str, sentence: str) -> Any:
    """The module, imported now; without it the error is this sentence."""
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(sentence) from None


def plain_table(run: Trajectory) -> pd.DataFrame:
    """Long format: one row per value; if a curve does not have a dimension, that column is empty in its rows.

    If the labels of one dimension have different types, they are converted to text.
    """
    table = run.to_dataframe()
    for name in table.columns:
        if table[name].dtype == object:
            labels = table[name].map(plain_label, na_action="ignore")
            kinds = {type(label) for label in labels.dropna()}
            table[name] = labels if len(kinds) < 2 else labels.map(str, na_action="ignore")
    return table


def to_csv(run: Trajectory, place: Path) -> None:
    """Every value as one row, with full precision."""
    write_atomically(place, csv_text(plain_table(run)).encode())


def csv_text(table: pd.DataFrame) -> str:
    """A table as CSV in which no label is a formula or a command to a terminal."""
    for name in table.columns:
        if table[name].dtype.kind not in "fiub":
            table[name] = table[name].map(no_formula, na_action="ignore")
    return str(table.rename(columns=no_formula).to_csv(index=False, lineterminator="\n"))


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


def to_parquet(run: Trajectory, place: Path) -> None:
    """The same rows, with clock and origin in the metadata of the file."""
    table = plain_table(run)
    pa = needed("pyarrow", "Parquet needs pyarrow: pip install 'tiltmeter[export]'.")
    pq = import_module("pyarrow.parquet")
    columns = pa.Table.from_pandas(table, preserve_index=False)
    about = json.dumps({"clock": run.clock, "origin": run.origin.to_json()})
    columns = columns.replace_schema_metadata({**(columns.schema.metadata or {}), b"tiltmeter": about.encode()})
    with written_aside(place) as descriptor, os.fdopen(descriptor, "wb", closefd=False) as file:
        pq.write_table(columns, file)


#: Signs that LaTeX obeys.
_SIGNS = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    '"': r"\textquotedbl{}",
    "|": r"\textbar{}",
}


def to_latex(run: Trajectory, place: Path) -> None:
    r"""The values at the last evaluation, one row for each group, with the standard error in brackets where known.

    >>> print(latex_text("50 % of <a_b>"))
    50 \% of \textless{}a\_b\textgreater{}

    Seeds are averaged; the bracket is then the standard error over seeds.
    """
    names = [name for name in run if _fits(run, name) and not name.endswith("_se")]
    if not names:
        raise ValueError("A table needs a curve of groups with at least one evaluation. Found none.")
    groups = run[names[0]].coords["group"].values.tolist()
    lines = [r"\begin{tabular}{l" + "r" * len(names) + "}", r"\toprule"]
    lines.append(" & ".join(["group", *(latex_text(name.replace("_", " ")) for name in names)]) + r" \\")
    lines.append(r"\midrule")
    for group in groups:
        cells = [_cell(run, name, group) for name in names]
        lines.append(" & ".join([latex_text(str(plain_label(group))), *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", ""]
    write_atomically(place, "\n".join(lines).encode())


def latex_text(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return "".join(_SIGNS.get(sign, sign) for sign in visible(text).replace("\n", " "))


def _fits(run: Trajectory, name: str) -> bool:
    curve = run[name]
    return "group" in curve.dims and set(curve.dims) <= {"time", "group", "seed"} and curve.sizes["time"] > 0


def _cell(run: Trajectory, name: str, group: object) -> str:
    places = run[name].coords["group"].values.tolist()
    if group not in places:
        return "--"
    last = run[name].isel(time=-1, group=places.index(group)).values
    if not np.isfinite(last).any():
        return "--"
    error = float("nan")
    if last.ndim and last.size > 1:
        error = float(np.nanstd(last, ddof=1) / np.sqrt(np.isfinite(last).sum()))
    elif f"{name}_se" in run:
        error = float(run[f"{name}_se"].isel(time=-1, group=places.index(group)).values.reshape(-1)[0])
    return f"{float(np.nanmean(last)):.4f}" + (f" ({error:.4f})" if np.isfinite(error) else "")
