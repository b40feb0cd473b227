"""to_tensorboard: a run as TensorBoard event files, with all groups of a curve on one chart."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np

from tiltmeter.export.scalars import check_whole_steps, lines_over_time, unlike
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
    check_whole_steps(run, "TensorBoard")
    try:
        from tensorboard.summary import Writer
    except ImportError:
        raise ImportError("`to_tensorboard` needs tensorboard: pip install 'tiltmeter[export]'.") from None
    writers: dict[tuple[str, ...], Writer] = {}
    taken: set[str] = set()
    try:
        for name, curve in run.items():
            for label, line in lines_over_time(curve):
                if label not in writers:
                    folder_name = unlike("/".join(map(_folder_name, label)) or "all", taken)
                    writers[label] = Writer(str(place / folder_name))
                for step, value in zip(line.coords["time"].values, line.values, strict=True):
                    if np.isfinite(value):
                        writers[label].add_scalar(name, float(value), int(step))
    finally:
        for writer in writers.values():
            writer.close()
    return place


def _folder_name(word: str) -> str:
    """A word that is a valid folder name on every system."""
    safe = re.sub(r'[\x00-\x1f<>:"/\\|?*]', "_", word).rstrip(" .")
    return safe or "_"
