"""write: a run as a file of the kind that its name says; NetCDF and Zarr have one group for each curve."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.arguments import A_RUN, checked_kind, checked_path
from tiltmeter.export.tables import needed, plain_label, to_csv, to_latex, to_parquet
from tiltmeter.export.trackers import to_tensorboard
from tiltmeter.record import Trajectory


def write(run: Trajectory, path: str | os.PathLike[str], *, curves: Sequence[str] = ()) -> Path:
    """Write a run for other programs, as the name of the file says.

    >>> from tempfile import TemporaryDirectory
    >>> from tiltmeter import predict
    >>> from tiltmeter.theory import cases
    >>> run = predict(*cases.centred_crossing(), curves=("loss",))
    >>> with TemporaryDirectory() as folder:
    ...     print(write(run, f"{folder}/run.csv").read_text().splitlines()[0])
    curve,time,group,value

    - `.csv`, `.parquet`: one row for every value: curve, time, the labels of its dimensions, value, in full precision.
      In CSV, a label that a spreadsheet would take for a formula gets an apostrophe in front. Parquet also keeps clock
      and origin, as JSON under the key `tiltmeter` of its metadata.
    - `.tex`: a LaTeX table of the last evaluation, one row for each group, with standard errors in brackets; it needs
      `booktabs`. Seeds are averaged.
    - `.nc`, `.zarr`: labelled arrays, one group for each curve, with times, labels, clock and origin, as
      `xarray.open_datatree` reads them.
    - a name without an ending: a new folder of TensorBoard events, one run for each group, so that its charts show all
      groups of a curve together. Times should be whole steps.

    Args:
        run: Run whose curves are written.
        path: File to write, or a new folder for Zarr and TensorBoard.
        curves: Curves to write, with their standard errors; empty: all.
    """
    checked_kind("run", run, Trajectory, A_RUN)
    place = checked_path("path", path)
    writer = WRITERS.get(place.suffix.lower())
    if writer is None:
        known = ", ".join(suffix for suffix in WRITERS if suffix)
        raise ValueError(f"`path` should end in one of {known}, or be a folder for TensorBoard. Found {place.name!r}.")
    if place.suffix and not place.parent.is_dir():
        raise FileNotFoundError(f"`path` should lie in an existing directory. Found none at {place.parent}.")
    if curves:
        names = [name for curve in curves for name in (curve, f"{curve}_se") if name == curve or name in run]
        run = Trajectory({name: run[name] for name in names}, run.clock, run.origin)
    writer(run, place)
    return place


def to_netcdf(run: Trajectory, place: Path) -> None:
    """A NetCDF-4 file. Labels that are no plain text or numbers (intersections) become text."""
    tree = curve_tree(run)
    for module in ("h5netcdf", "h5py"):
        needed(module, "NetCDF needs h5netcdf and h5py: pip install 'tiltmeter[arrays]'.")
    tree.to_netcdf(place, engine="h5netcdf")


def to_zarr(run: Trajectory, place: Path) -> None:
    """A Zarr store in a new folder: the same tree."""
    if place.exists():
        raise FileExistsError(f"{place} already exists and is never overwritten. Choose a new name.")
    tree = curve_tree(run)
    needed("zarr", "Zarr needs zarr: pip install 'tiltmeter[arrays]'.")
    # Version 2: in version 3 labels that are text have no fixed representation yet.
    tree.to_zarr(place, mode="w-", zarr_format=2)


#: What writes a run, by the ending of the file.
WRITERS: dict[str, Callable[[Trajectory, Path], None]] = {
    ".csv": to_csv,
    ".parquet": to_parquet,
    ".tex": to_latex,
    ".nc": to_netcdf,
    ".zarr": to_zarr,
    "": to_tensorboard,
}


def curve_tree(run: Trajectory) -> xr.DataTree:
    """The curves as a tree of datasets, each under its own name, with plain labels and attributes."""
    nodes: dict[str, Any] = {f"/{name}": _plain(curve).to_dataset(name=name) for name, curve in run.items()}
    tree = xr.DataTree.from_dict(nodes)
    tree.attrs = {"clock": run.clock, "origin": json.dumps(run.origin.to_json())}
    return tree


def _plain(curve: xr.DataArray) -> xr.DataArray:
    coords: dict[str, Any] = {}
    for name, coord in curve.coords.items():
        values = coord.values
        if values.dtype == object:
            labels = [plain_label(label) for label in values.ravel().tolist()]
            if len({type(label) for label in labels}) > 1:
                labels = list(map(str, labels))
            values = np.asarray(labels).reshape(values.shape)
        coords[str(name)] = (coord.dims, values)
    attrs = {
        str(name): value if isinstance(value, (str, int, float)) and not isinstance(value, bool) else json.dumps(value)
        for name, value in curve.attrs.items()
    }
    return xr.DataArray(curve.values, dims=curve.dims, coords=coords, attrs=attrs)
