"""Probabilities of the last look, point by point, where the same threshold decides for all."""

from __future__ import annotations

import numpy as np

from tiltmeter.analysis.last_look import LastLook
from tiltmeter.record.trajectory import Trajectory


def last_probabilities(trajectory: Trajectory, look: LastLook) -> np.ndarray | None:
    """(seeds, points): the probability of the positive label; None if none were kept, or if another rule decides.

    >>> import xarray as xr
    >>> from tiltmeter.analysis.last_look import last_look
    >>> from tiltmeter.record import Origin
    >>> chance = np.array([0.2, 0.8])
    >>> coords = {"time": [9], "group": ("point", ["a", "b"]), "positive": ("point", [True, True])}
    >>> arrays = {"probability": chance, "loss": chance, "decided_positive": chance > 0.5}
    >>> points = {name: xr.DataArray(one[None], dims=("time", "point"), coords=coords) for name, one in arrays.items()}
    >>> run = Trajectory({}, "step", Origin("training"), points=points)
    >>> last_probabilities(run, last_look(run)).tolist()
    [[0.2, 0.8]]
    """
    if "probability" not in trajectory.points:
        return None
    array = trajectory.points["probability"]
    if not array.sizes["time"] or float(array.coords["time"][-1]) != look.time:
        return None  # taken up again without a last look
    array = array.isel(time=-1)
    chance = np.atleast_2d(array.transpose(*(("seed", "point") if "seed" in array.dims else ("point",))).values)
    if chance.shape != look.decided.shape or not np.isfinite(chance).all():
        return None
    return None if ((chance > 0.5) != look.decided).mean() > 1e-3 else chance
