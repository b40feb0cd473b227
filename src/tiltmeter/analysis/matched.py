"""at_matched_error: a curve at the first look where training has got as far as a given error."""

from __future__ import annotations

import numpy as np
import xarray as xr

from tiltmeter.record.trajectory import Trajectory


def at_matched_error(run: Trajectory, curve: str, level: float, error: str | None = None) -> xr.DataArray:
    """The curve at the first look whose error is at most `level`, with the coordinate `reached`: when that was.

    >>> from tiltmeter.record import Origin
    >>> times = {"time": [0, 10, 20]}
    >>> error, noise = (xr.DataArray(values, coords=times) for values in ([0.5, 0.1, 0.0], [0.0, 0.2, 0.4]))
    >>> run = Trajectory({"error": error, "noise": noise}, "step", Origin("example"))
    >>> float(at_matched_error(run, "noise", level=0.2))
    0.2

    Models should be compared when they fit equally well, not after equally many steps. `error` is the curve to go by
    (default: training_error where recorded, else error), averaged over groups with equal weight. Each seed or grid
    point has its own moment; where the level is never reached the answer is NaN. A curve recorded at fewer looks is
    read at its first look from there on.
    """
    if not 0 <= level <= 1:
        raise ValueError(f"`level` should be an error from 0 to 1. Found level = {level}.")
    wrong = run[error or ("training_error" if "training_error" in run else "error")]
    if "group" in wrong.dims:
        wrong = wrong.mean("group")
    values = run[curve]
    reached = wrong.coords["time"].astype(float).where(wrong <= level, np.inf).min("time")
    looks = values.coords["time"].astype(float)
    # The first look of the curve that is not before: times are ascending, so it is the one with most times ahead of it.
    ahead = (looks >= reached).transpose("time", ...)
    first = ahead.argmax("time")
    found = values.isel(time=first).where(ahead.any("time")).drop_vars("time", errors="ignore")
    return found.assign_coords(reached=reached.where(np.isfinite(reached)))
