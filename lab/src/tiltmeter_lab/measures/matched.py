"""at_matched_error: a curve at the first evaluation where training has reached a given error."""

from __future__ import annotations

import numpy as np
import xarray as xr

from tiltmeter.record.trajectory import Trajectory


def at_matched_error(run: Trajectory, curve: str, level: float, error: str | None = None) -> xr.DataArray:
    """Return the curve at the first evaluation whose error is at most `level`; the coordinate `reached` is its time.

    >>> from tiltmeter.record import Origin
    >>> times = {"time": [0, 10, 20]}
    >>> error, noise = (xr.DataArray(values, coords=times) for values in ([0.5, 0.1, 0.0], [0.0, 0.2, 0.4]))
    >>> run = Trajectory({"error": error, "noise": noise}, "step", Origin("example"))
    >>> float(at_matched_error(run, "noise", level=0.2))
    0.2

    This compares models that fit equally well, instead of models after the same number of steps. The error is averaged
    over groups with equal weights. Each seed or grid point has its own time; the result is NaN if the level is never
    reached. A curve recorded at fewer evaluations is read at its next evaluation.

    Args:
        run: Run to look at, as `tm.load`, `tm.train` or a probe returns it.
        curve: Curve that is read.
        level: Error that should be reached.
        error: Curve that is matched; None: training_error if recorded, else error.
    """
    if not 0 <= level <= 1:
        raise ValueError(f"`level` should be an error from 0 to 1. Found level = {level}.")
    wrong = run[error or ("training_error" if "training_error" in run else "error")]
    if "group" in wrong.dims:
        wrong = wrong.mean("group")
    values = run[curve]
    reached = wrong.coords["time"].astype(float).where(wrong <= level, np.inf).min("time")
    evaluations = values.coords["time"].astype(float)
    # The first evaluation of the curve that is not earlier.
    ahead = (evaluations >= reached).transpose("time", ...)
    first = ahead.argmax("time")
    found = values.isel(time=first).where(ahead.any("time")).drop_vars("time", errors="ignore")
    return found.assign_coords(reached=reached.where(np.isfinite(reached)))
