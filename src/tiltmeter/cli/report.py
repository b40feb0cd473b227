"""`tiltmeter report`: write runs as one HTML page."""

from __future__ import annotations

import json as machine
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from tiltmeter.cli.run_input import PredictionColumns, is_table, read_runs
from tiltmeter.cli.terminal import Json, print_json
from tiltmeter.discover.discovery import Discovery
from tiltmeter.question import Question
from tiltmeter.report.runs import page as write


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class QuestionOptions:
    """What the positive decision means to a person."""

    kind: Literal["benefit", "burden"] | None = None
    """What the positive decision does to a person: a benefit (whom does it miss?) or a burden (whom does it meet
    wrongly?). Default: the question of the data, else the largest clear difference."""
    decided: str | None = None
    'The positive decision in the past tense, as "flagged" or "approved".'
    outcome: str | None = None
    'What it foretells, as "reoffended" or "repaid".'

    @property
    def question(self) -> Question | None:
        if self == QuestionOptions():
            return None
        return Question(self.decided, self.outcome, self.kind or "benefit")


def report(
    *runs: Path,
    out: Annotated[Path, Parameter(name=["--out", "-o"])] = Path("tiltmeter-report.html"),
    title: str | None = None,
    columns: PredictionColumns = PredictionColumns(),
    options: QuestionOptions = QuestionOptions(),
    groups: Path | None = None,
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
        The heading of the page. Default: "Bias during training", or "Bias of the model" for one evaluation.
    groups
        Groups nobody named, as `tiltmeter discover --to` wrote them.
    """
    tables = any(map(is_table, runs)) or columns.given
    chosen: Any = read_runs(runs, columns) if tables else list(runs)
    if len(chosen) == 1 and tables:
        chosen = list(chosen.values())
    discovery = None if groups is None else _groups(groups)
    written, numbers = write(chosen, out, title=title, question=options.question, discovery=discovery)
    if json:
        print_json({"page": str(written.resolve()), **numbers})
        return
    for words in (numbers.get("line"), numbers.get("licence")):
        if words:
            print(words)
    label = numbers.get("positive_label")
    if label is not None and "tpr" in numbers["measures"]:
        print(f"Positive label: {label['name']}.")
    print(f"Page: {written.resolve()}")


def _groups(path: Path) -> Discovery:
    try:
        return Discovery.from_json(machine.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(
            f"{path} should be a file that `tiltmeter discover --to` wrote. Found something else."
        ) from None
