"""`tiltmeter report`: write runs as one HTML page."""

from __future__ import annotations

import json as machine
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from tiltmeter.cli.run_input import PredictionColumns, is_table, read_runs
from tiltmeter.cli.terminal import Json
from tiltmeter.report.runs import page as write


def report(
    *runs: Path,
    out: Annotated[Path, Parameter(name=["--out", "-o"])] = Path("tiltmeter-report.html"),
    title: str = "Bias during training",
    columns: PredictionColumns = PredictionColumns(),
    positive: Literal["benefit", "burden"] | None = None,
    json: Json = False,
) -> None:
    """Write runs, or a table of predictions, as one HTML page for a review; it works offline and without scripts.

    Parameters
    ----------
    runs
        Run directories, or tables of predictions (.csv, .parquet, .feather).
    out
        Where to write the page.
    title
        The heading of the page.
    positive
        What the positive decision does to a person: a benefit (whom does the model find?) or a burden (whom does it
        wrongly say yes to?).
    """
    tables = any(map(is_table, runs)) or columns.given
    chosen: Any = read_runs(runs, columns) if tables else list(runs)
    if len(chosen) == 1 and tables:
        chosen = list(chosen.values())
    written, told = write(chosen, out, title=title, positive=positive)
    if json:
        print(machine.dumps({"page": str(written.resolve()), **told}, indent=2, allow_nan=False))
        return
    label = told.get("positive_label")
    if label is not None and "tpr" in told["measures"]:
        print(f"Positive label: {label['name']}.")
    for words in (told.get("headline"), told.get("who")):
        if words:
            print(words)
    print(f"Page: {written.resolve()}")
