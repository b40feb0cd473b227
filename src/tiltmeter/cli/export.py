"""`tiltmeter export`: write a run directory for other programs."""

from __future__ import annotations

import json as json_module
from pathlib import Path

from tiltmeter.cli.terminal import Json
from tiltmeter.export import write
from tiltmeter.record import Trajectory, load


def export(run: Path, *files: Path, json: Json = False) -> None:
    """Export a run for other programs, as the names of the files say.

    .csv and .parquet are tables of all values, .tex a table of the last evaluation, .nc and .zarr labelled arrays;
    .md is a model card that gets a section about bias; without an ending: a new folder of TensorBoard events.

    Parameters
    ----------
    run
        The run directory.
    files
        The files to write, such as run.csv or README.md.
    """
    loaded = load(run)
    if not isinstance(loaded, Trajectory):
        raise ValueError(f"Only runs with curves over time can be exported. Found an equilibrium in {run}.")
    if not files:
        raise ValueError("Nothing to write: name a file, such as run.csv, run.parquet, run.nc, table.tex or README.md.")
    written = [str(_card(loaded, file) if file.suffix.lower() == ".md" else write(loaded, file)) for file in files]
    if json:
        print(json_module.dumps({"written": written}))
        return
    values = sum(curve.size for curve in loaded.values())
    print(f"{len(loaded)} curve{'' if len(loaded) == 1 else 's'}, {values} values: {', '.join(written)}")


def _card(run: Trajectory, path: Path) -> Path:
    from tiltmeter.report.card_file import to_model_card

    to_model_card(run, path)
    return path
