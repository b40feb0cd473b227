"""`tiltmeter show`: what a run directory holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tiltmeter.cli.pictures import save_pictures
from tiltmeter.cli.summary import Summary
from tiltmeter.record import check, load
from tiltmeter.record.trajectory import Trajectory


def show(
    run: Path,
    *,
    curve: str = "loss",
    save: Annotated[tuple[Path, ...], Parameter(negative_iterable=())] = (),
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """What a run directory holds, in words, as a table and as a picture.

    Parameters
    ----------
    run
        The run directory.
    curve
        The curve in which leaders are compared.
    save
        Draw the curves to this file (png, svg, pdf or html); may be repeated.
    json
        Print the results as JSON.
    """
    loaded = load(run)
    if not isinstance(loaded, Trajectory):
        print(loaded)
        return
    summary = Summary(loaded, curve)
    save_pictures(summary, save)
    summary.print(as_json=json)
    if not json:
        print(check(run))
