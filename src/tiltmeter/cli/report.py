"""`tiltmeter report`: runs as one HTML page."""

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
    """Runs as one HTML page that opens offline, to hand to a reviewer.

    Parameters
    ----------
    runs
        Run directories.
    out
        Where to write the page.
    title
        Its heading.
    """
    page = write(list(runs), out, title=title).resolve()
    print(machine.dumps({"page": str(page)}) if json else f"Page: {page}")
