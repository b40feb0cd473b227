"""`tiltmeter export`: write a run directory for other programs."""

from __future__ import annotations

import json as json_module
from pathlib import Path

from tiltmeter.cli.terminal import Json
from tiltmeter.export import to_csv, to_latex, to_netcdf, to_parquet, to_tensorboard, to_zarr
from tiltmeter.record import Trajectory, load


def export(
    run: Path,
    *,
    csv: Path | None = None,
    parquet: Path | None = None,
    tensorboard: Path | None = None,
    latex: Path | None = None,
    netcdf: Path | None = None,
    zarr: Path | None = None,
    card: Path | None = None,
    json: Json = False,
) -> None:
    """Export a run for other programs: tables, NetCDF, Zarr, TensorBoard event files or a model card.

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
    netcdf
        Write a NetCDF-4 file, one group for each curve.
    zarr
        Write a Zarr store to this new folder.
    card
        Put a section about bias into this model card, a Markdown file as Hugging Face keeps it.
    """
    loaded = load(run)
    if not isinstance(loaded, Trajectory):
        raise ValueError(f"Only runs with curves over time can be exported. Found an equilibrium in {run}.")
    places = {
        "csv": (csv, to_csv),
        "parquet": (parquet, to_parquet),
        "tensorboard": (tensorboard, to_tensorboard),
        "latex": (latex, to_latex),
        "netcdf": (netcdf, to_netcdf),
        "zarr": (zarr, to_zarr),
        "card": (card, _card),
    }
    written = {word: str(write(loaded, place)) for word, (place, write) in places.items() if place is not None}
    if not written:
        raise ValueError(
            "Nothing to write: pass --csv FILE, --parquet FILE, --tensorboard FOLDER, --latex FILE, --netcdf FILE, "
            "--zarr FOLDER or --card FILE."
        )
    if json:
        print(json_module.dumps(written))
        return
    values = sum(curve.size for curve in loaded.values())
    print(f"{len(loaded)} curve{'' if len(loaded) == 1 else 's'}, {values} values: {', '.join(written.values())}")


def _card(run: Trajectory, path: Path) -> Path:
    from tiltmeter.report.card_file import to_model_card

    to_model_card(run, path)
    return path
