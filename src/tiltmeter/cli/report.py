"""`tiltmeter report`: write runs as one HTML page."""

from __future__ import annotations

import json as machine
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tiltmeter.cli.flags import Json
from tiltmeter.report.runs import report as write


def report(
    *runs: Path,
    out: Annotated[Path, Parameter(name=["--out", "-o"])] = Path("tiltmeter-report.html"),
    title: str = "Bias during training",
    json: Json = False,
) -> None:
    """Write runs as one HTML page for a review; it works offline.

    Parameters
    ----------
    runs
        Run directories.
    out
        Where to write the page.
    title
        The heading of the page.
    """
    page = write(list(runs), out, title=title).resolve()
    print(machine.dumps({"page": str(page)}) if json else f"Page: {page}")
