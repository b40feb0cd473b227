"""Histories of other loggers as a Trajectory, so that crossings and phases can be asked of runs without a probe."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.data.any_frame import any_frame
from tiltmeter.export.tables import needed
from tiltmeter.record import Origin, Trajectory
from tiltmeter.record.labelled import labels_array
from tiltmeter.record.trajectory import Clock


def from_table(
    table: Any, curves: Mapping[str, Mapping[Hashable, str]], time: str = "step", clock: Clock = "step"
) -> Trajectory:
    """A history with one row per evaluation as a Trajectory: `curves` says which column holds which group of which
    curve.

    >>> import pandas as pd
    >>> history = pd.DataFrame({"step": [1, 10, 100], "loss_a": [1.0, 0.5, 0.4], "loss_b": [0.9, 0.6, 0.5]})
    >>> run = from_table(history, {"loss": {"a": "loss_a", "b": "loss_b"}})
    >>> run["loss"].sel(group="b").values.tolist()
    [0.9, 0.6, 0.5]

    Rows in which all groups of a curve are missing are no looks at it. A curve `loss_se` gives the standard errors of
    `loss`; without it nothing is known about the noise.

    Args:
        table: DataFrame of any library, or the path of a file, with one row per evaluation.
        curves: For every curve, which column holds which group.
        time: Column of the times.
        clock: What time counts: "step", "epoch", "round" or "t".
    """
    frame = any_frame(table)
    if not isinstance(curves, Mapping) or not curves:
        raise TypeError("`curves` should map curves to columns by group, as {'loss': {'a': 'loss_a', 'b': 'loss_b'}}.")
    wanted = [time]
    for name, columns in curves.items():
        if not isinstance(columns, Mapping) or not columns:
            raise TypeError(
                f"`curves` should map {name!r} to columns by group, as {{'a': '{name}_a'}}. Found {columns!r}."
            )
        wanted += columns.values()
    for column in wanted:
        if column not in frame.columns:
            raise KeyError(f"No column {column!r}. There are: {', '.join(map(str, frame.columns))}.")
        if frame[column].dtype.kind not in "fiub":
            raise TypeError(f"A history should hold numbers. Found other values in {column!r}.")
    times = frame[time].to_numpy(dtype=float)
    if not np.isfinite(times).all() or (np.diff(times) <= 0).any():
        raise ValueError(f"Times should increase from row to row. Found others in {time!r}: sort, one row per time.")
    found = {}
    for name, columns in curves.items():
        values = frame[list(columns.values())].to_numpy(dtype=float)
        kept = ~np.isnan(values).all(axis=1)
        coords = {"time": times[kept], "group": labels_array(tuple(columns))}
        found[name] = xr.DataArray(values[kept], dims=("time", "group"), coords=coords)
    columns_of: dict[str, Any] = {name: list(columns.values()) for name, columns in curves.items()}
    return Trajectory(found, clock, Origin("history", settings={"columns": columns_of}))


def from_tensorboard(folder: str | os.PathLike[str], clock: Clock = "step") -> Trajectory:
    """Scalars of TensorBoard as a Trajectory: each folder below is a group, each tag a curve.

    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd, tiltmeter as tm
    >>> history = pd.DataFrame({"step": [1, 10], "loss_a": [1.0, 0.5], "loss_b": [0.75, 0.625]})
    >>> run = tm.export.from_table(history, {"loss": {"a": "loss_a", "b": "loss_b"}})
    >>> with TemporaryDirectory() as folder:
    ...     again = from_tensorboard(tm.export.write(run, f"{folder}/events"))
    >>> again["loss"].sel(group="b").values.tolist()
    [0.75, 0.625]

    This is how `to_tensorboard` writes a run. Steps that only some groups have are NaN for the others.

    Args:
        folder: Folder with one folder of events per group.
        clock: What time counts: "step" or "epoch".
    """
    sentence = "`from_tensorboard` needs tensorboard: pip install 'tiltmeter[export]'."
    accumulator = needed("tensorboard.backend.event_processing.event_accumulator", sentence)
    place = Path(folder)
    if not place.is_dir():
        raise FileNotFoundError(f"No folder {place}.")
    series: dict[str, dict[str, dict[int, float]]] = {}
    for events in sorted({path.parent for path in place.rglob("events.out.tfevents.*")}):
        reader = accumulator.EventAccumulator(str(events), size_guidance={"scalars": 0, "tensors": 0})
        reader.Reload()
        group = events.relative_to(place).as_posix()
        for tag in reader.Tags()["scalars"]:
            series.setdefault(tag, {})[group] = {event.step: event.value for event in reader.Scalars(tag)}
        for tag in reader.Tags()["tensors"]:
            points = {event.step: _number(event.tensor_proto) for event in reader.Tensors(tag)}
            series.setdefault(tag, {})[group] = {step: value for step, value in points.items() if value is not None}
    if not series:
        raise ValueError(f"{place} should hold event files with scalars. Found none.")
    found = {}
    for tag, groups in series.items():
        steps = sorted({step for values in groups.values() for step in values})
        table = [[values.get(step, np.nan) for values in groups.values()] for step in steps]
        coords = {"time": np.asarray(steps, dtype=float), "group": labels_array(tuple(groups))}
        found[tag] = xr.DataArray(np.asarray(table), dims=("time", "group"), coords=coords)
    return Trajectory(found, clock, Origin("history", settings={"tensorboard": place.name}))


def _number(proto: Any) -> float | None:
    """The number in a tensor event; None for anything larger."""
    from tensorboard.util import tensor_util

    array = tensor_util.make_ndarray(proto)
    return float(array) if array.ndim == 0 and array.dtype.kind in "fiu" else None
