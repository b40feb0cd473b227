"""to_csv: a run as a table that any program can read."""

from __future__ import annotations

import os
from pathlib import Path

from tiltmeter.export.table import plain_table, target
from tiltmeter.record import Trajectory


def to_csv(run: Trajectory, path: str | os.PathLike[str]) -> Path:
    """Write every value of a run as one row: curve, time, the labels of its dimensions, value.

    Numbers are written with full precision. The origin of the run is not in the file: keep the run directory.
    """
    place = target(path, ".csv")
    plain_table(run).to_csv(place, index=False, lineterminator="\n")
    return place
