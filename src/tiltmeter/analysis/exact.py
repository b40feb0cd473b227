"""Exact curves: a theory trajectory, fresh or loaded from disk, evaluated again at any time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.record.trajectory import Trajectory


def theory_of(trajectory: Trajectory) -> tuple[Mixture, SGD] | None:
    """The problem and SGD behind the theory of a linear student, rebuilt from its origin; None for anything else."""
    origin = trajectory.origin
    if origin.source != "theory" or not isinstance(origin.problem, dict):
        return None
    if "student" in origin.settings:
        return None  # a network's curves have no closed form; `evaluate` integrates them again
    stored: Any = origin.settings.get("sgd")
    try:
        return Mixture.from_json(origin.problem), SGD.from_json(stored)
    except (KeyError, TypeError, ValueError):
        return None  # a user's own schedule cannot be rebuilt from a file


def exact_curve(trajectory: Trajectory, name: str) -> Callable[[Any], xr.DataArray] | None:
    """One curve of a theory trajectory as a function of time; None for what is only known where it was recorded."""
    rebuilt = theory_of(trajectory) if trajectory.clock == "t" else None
    if rebuilt is not None:
        from tiltmeter.theory.predict import predict

        alone = predict(*rebuilt, trajectory[name].coords["time"].values[:1], curves=(name,)).evaluate
        if alone is not None:
            return lambda times: alone(np.atleast_1d(times))[name]
    whole = trajectory.evaluate
    return None if whole is None else lambda times: whole(np.atleast_1d(times))[name]
