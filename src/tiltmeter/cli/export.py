"""`tiltmeter export`: write a run directory for other programs."""

from __future__ import annotations

from pathlib import Path

from tiltmeter.cli.terminal import Json, print_json
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
    for file in files:
        if file.suffix.lower() == ".md":
            from tiltmeter.report.model_card import to_model_card

            to_model_card(loaded, file)
        else:
            write(loaded, file)
    written = list(map(str, files))
    if json:
        print_json({"written": written})
        return
    values = sum(curve.size for curve in loaded.values())
    print(f"{len(loaded)} curve{'' if len(loaded) == 1 else 's'}, {values} values: {', '.join(written)}")
