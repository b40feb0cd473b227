"""`tiltmeter report`: write runs as one HTML page."""

from __future__ import annotations

import json as machine
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from tiltmeter.cli.terminal import Json
from tiltmeter.discover.discovery import Discovery
from tiltmeter.report.runs import page as write


def report(
    *runs: Path,
    out: Annotated[Path, Parameter(name=["--out", "-o"])] = Path("tiltmeter-report.html"),
    title: str = "Bias during training",
    positive: Literal["benefit", "burden"] | None = None,
    groups: Path | None = None,
    json: Json = False,
) -> None:
    """Write runs as one HTML page for a review; it works offline and without scripts.

    Parameters
    ----------
    runs
        Run directories.
    out
        Where to write the page.
    title
        The heading of the page.
    positive
        What the positive decision does to a person: a benefit (whom does the model find?) or a burden (whom does it
        wrongly say yes to?).
    groups
        Groups nobody named, as `tiltmeter discover --to` wrote them.
    """
    discovery = None if groups is None else _groups(groups)
    written, told = write(list(runs), out, title=title, positive=positive, discovery=discovery)
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


def _groups(path: Path) -> Discovery:
    try:
        return Discovery.from_json(machine.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(
            f"{path} should be a file that `tiltmeter discover --to` wrote. Found something else."
        ) from None
