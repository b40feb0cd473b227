"""`tiltmeter export`: write a run directory for other programs."""

from __future__ import annotations

import json as json_module
from pathlib import Path

from tiltmeter.cli.flags import Json
from tiltmeter.export import to_csv, to_latex, to_parquet, to_tensorboard
from tiltmeter.record import Trajectory, load


def export(
    run: Path,
    *,
    csv: Path | None = None,
    parquet: Path | None = None,
    tensorboard: Path | None = None,
    latex: Path | None = None,
    json: Json = False,
) -> None:
    """Export a run for other programs: CSV, Parquet or TensorBoard event files.

    Parameters
    ----------
    run
        The run directory.
    csv
        Write a table to this file.
    parquet
        Write a table to this file, including the origin of the run.
    tensorboard
        Write event files to this new folder, one run per group.
    latex
        Write the last values of all groups as a table for LaTeX to this file.
    """
    loaded = load(run)
    if not isinstance(loaded, Trajectory):
        raise ValueError(f"Only runs with curves over time can be exported. Found an equilibrium in {run}.")
    places = {
        "csv": (csv, to_csv),
        "parquet": (parquet, to_parquet),
        "tensorboard": (tensorboard, to_tensorboard),
        "latex": (latex, to_latex),
    }
    written = {word: str(write(loaded, place)) for word, (place, write) in places.items() if place is not None}
    if not written:
        raise ValueError("Nothing to write: pass --csv FILE, --parquet FILE, --tensorboard FOLDER or --latex FILE.")
    if json:
        print(json_module.dumps(written))
        return
    values = sum(curve.size for curve in loaded.values())
    print(f"{len(loaded)} curve{'' if len(loaded) == 1 else 's'}, {values} values: {', '.join(written.values())}")
