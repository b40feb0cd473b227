"""to_tensorboard: a run as TensorBoard event files, with all groups of a curve on one chart."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xarray as xr

from tiltmeter.export.table import plain_label
from tiltmeter.record import Trajectory


def to_tensorboard(run: Trajectory, folder: str | os.PathLike[str]) -> Path:
    """Write one TensorBoard run per group (and seed, or any other dimension), with one scalar per curve.

    TensorBoard draws equal names of several runs on one chart, so `loss` shows all groups together. Missing values are
    left out. TensorBoard counts whole steps; a run with fractional times raises an error.
    """
    if not isinstance(run, Trajectory):
        raise TypeError(f"`run` should be a Trajectory, for example from `load`. Found {type(run).__name__}.")
    place = Path(folder)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise FileExistsError(f"{place} already exists and is never overwritten. Choose a new name.")
    for name, curve in run.items():
        times = curve.coords["time"].values
        if not np.array_equal(times, np.round(times)):
            raise ValueError(
                f"TensorBoard counts whole steps. Found fractions in the times of {name!r} on clock {run.clock!r}: "
                'convert with `on_clock("step", ...)`, or export to CSV or Parquet.'
            )
    try:
        from tensorboard.summary import Writer
    except ImportError:
        raise ImportError("`to_tensorboard` needs tensorboard: pip install 'tiltmeter[export]'.") from None
    writers: dict[str, Writer] = {}
    try:
        for name, curve in run.items():
            for label, line in _lines(curve):
                if label not in writers:
                    writers[label] = Writer(str(place / label))
                for step, value in zip(line.coords["time"].values, line.values, strict=True):
                    if np.isfinite(value):
                        writers[label].add_scalar(name, float(value), int(step))
    finally:
        for writer in writers.values():
            writer.close()
    return place


def _lines(curve: xr.DataArray) -> Iterator[tuple[str, xr.DataArray]]:
    """Every line over time of a curve, with the name of its folder."""
    others = [dim for dim in curve.dims if dim != "time"]
    for place in np.ndindex(*(curve.sizes[dim] for dim in others)):
        where = dict(zip(others, place, strict=True))
        labels = {
            dim: plain_label(curve.coords[dim].values[i]) if dim in curve.coords else i for dim, i in where.items()
        }
        # Groups have their own names; other dimensions include the name of the dimension.
        words = [str(label) if dim in ("group", "pair") else f"{dim}={label}" for dim, label in labels.items()]
        yield "/".join(map(_folder_name, words)) or "all", curve.isel(where)


def _folder_name(word: str) -> str:
    """A word that is a valid folder name on every system."""
    safe = re.sub(r'[\x00-\x1f<>:"/\\|?*]', "_", word).rstrip(" .")
    return safe or "_"
