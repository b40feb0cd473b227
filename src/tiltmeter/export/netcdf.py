"""to_netcdf, to_zarr: a run as a tree of labelled arrays, one group of the file for each curve."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.arguments import A_RUN, checked_kind
from tiltmeter.export.tables import plain_label, target
from tiltmeter.record import Trajectory


def to_netcdf(run: Trajectory, path: str | os.PathLike[str]) -> Path:
    """Write a NetCDF-4 file, which `xarray.open_datatree` and any NetCDF program read: one group for each curve.

    Every curve keeps its own times, labels and attributes; clock and origin are attributes of the file. Labels that are
    no plain text or numbers (intersections) become text.

    Args:
        run: Run whose curves are written.
        path: File to write.
    """
    place = target(path, ".nc")
    tree = curve_tree(run)
    try:
        import h5netcdf  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
        import h5py  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
    except ImportError:
        raise ImportError("`to_netcdf` needs h5netcdf and h5py: pip install 'tiltmeter[arrays]'.") from None
    tree.to_netcdf(place, engine="h5netcdf")
    return place


def to_zarr(run: Trajectory, folder: str | os.PathLike[str]) -> Path:
    """Write a Zarr store to a new folder: the same tree as `to_netcdf`.

    Args:
        run: Run whose curves are written.
        folder: New folder for the store.
    """
    place = Path(folder)
    if place.exists():
        raise FileExistsError(f"{place} already exists and is never overwritten. Choose a new name.")
    tree = curve_tree(run)
    try:
        import zarr  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
    except ImportError:
        raise ImportError("`to_zarr` needs zarr: pip install 'tiltmeter[arrays]'.") from None
    # Version 2: in version 3 labels that are text have no fixed representation yet.
    tree.to_zarr(place, mode="w-", zarr_format=2)
    return place


def curve_tree(run: Trajectory) -> xr.DataTree:
    """The curves as a tree of datasets, each under its own name, with plain labels and attributes."""
    checked_kind("run", run, Trajectory, A_RUN)
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
