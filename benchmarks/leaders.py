"""Seconds of the processor that `leaders` takes of a million points, and of two hundred groups.

`python benchmarks/leaders.py`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter.record import Origin

sys.path.insert(0, str(Path(__file__).parent))
from _measure import best, report

#: Points, groups, evaluations, and the seconds of a processor that a verdict may take.
CASES = ((1_000_000, 2, 5, 5.0), (1_000_000, 2, 20, 5.0), (20_000, 200, 5, 2.0), (131_072, 200, 5, 5.0))


def kept_run(points: int, groups: int, evaluations: int) -> tm.Trajectory:
    """A run in which no group is better off, with the loss and the decision of every point kept."""
    rng = np.random.default_rng(0)
    names = np.array([f"g{code}" for code in range(groups)])[rng.integers(groups, size=points)]
    coords = {"time": np.arange(1, evaluations + 1), "group": ("point", names)}
    shape = evaluations, points
    arrays = {"loss": rng.exponential(size=shape).astype("float32"), "wrong": rng.random(shape) < 0.3}
    kept = {name: xr.DataArray(part, dims=("time", "point"), coords=coords) for name, part in arrays.items()}
    means = {
        name: kept[place].astype(float).groupby("group").mean("point")
        for name, place in (("loss", "loss"), ("error", "wrong"))
    }
    # One group is clearly worse off, so that random groups are tried, too.
    kept["loss"][:, names == "g0"] += 0.5
    return tm.Trajectory(means, "step", Origin("training"), points=kept)


def main() -> None:
    rows = {}
    tm.leaders(kept_run(500, 2, 5))
    for points, groups, evaluations, bar in CASES:
        run = kept_run(points, groups, evaluations)
        seconds = best(lambda run=run: tm.leaders(run), 3, time.process_time)
        name = f"{points:,} points, {groups} groups, {evaluations} evaluations: processor s of {bar:g}"
        rows[name] = {"seconds": seconds, "ratio": seconds / bar, "bar": 1.0, "met": seconds <= bar}
    report("leaders", rows)


if __name__ == "__main__":
    main()
