"""Exact curves: a theory trajectory, fresh or loaded from disk, evaluated again at any time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.problem.fixed import Fixed
from tiltmeter.problem.full_batch import Training, training_from_json
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.predict import predict


def linear_theory_of(trajectory: Trajectory) -> tuple[Mixture, Training, Fixed | None] | None:
    """The problem, training and training set behind the theory of a linear student; None for anything else."""
    origin = trajectory.origin
    if origin.source != "theory" or not isinstance(origin.problem, dict):
        return None
    if "student" in origin.settings:
        return None  # a network's curves have no closed form; `evaluate` integrates them again
    stored: Any = origin.settings.get("sgd")
    data: Any = origin.settings.get("data")
    try:
        training = training_from_json(stored)
        return Mixture.from_json(origin.problem), training, None if data is None else Fixed.from_json(data)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None  # a user's own schedule cannot be rebuilt from a file


def theory_of(trajectory: Trajectory) -> tuple[Mixture, SGD] | None:
    """The problem and SGD behind online theory, whose examples are all fresh; None for anything else."""
    found = linear_theory_of(trajectory)
    if found is None or found[2] is not None or not isinstance(found[1], SGD):
        return None
    return found[0], found[1]


def exact_curve(trajectory: Trajectory, name: str) -> Callable[[Any], xr.DataArray] | None:
    """One curve of a theory trajectory as a function of time; None for what is only known where it was recorded."""
    rebuilt = linear_theory_of(trajectory) if trajectory.clock == "t" else None
    if rebuilt is not None:
        problem, training, data = rebuilt
        # Once to the last time: the equations of SGD on a fixed set are solved that far and then read off anywhere.
        last = trajectory[name].coords["time"].values[-1:]
        alone = predict(problem, training, last, curves=(name,), data=data).evaluate
        if alone is not None:
            return lambda times: alone(np.atleast_1d(times))[name]
    whole = trajectory.evaluate
    return None if whole is None else lambda times: whole(np.atleast_1d(times))[name]
