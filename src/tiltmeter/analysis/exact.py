"""Exact curves: a theory trajectory, fresh or loaded from disk, evaluated again at any time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.population.quadrature import Sobol
from tiltmeter.problem.class_mixture import ClassMixture
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.student import Student, student_from_json
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.predict import predict


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


def class_theory_of(trajectory: Trajectory) -> tuple[ClassMixture, SGD, Student, Sobol | None] | None:
    """What is behind the theory of several classes, rebuilt from its origin; None for anything else."""
    origin = trajectory.origin
    if origin.source != "theory" or not isinstance(origin.problem, dict) or "class_mixture" not in origin.problem:
        return None
    stored: Any = origin.settings
    try:
        nodes = stored["quadrature"]
        quadrature = None if nodes is None else Sobol(nodes["count"], nodes["scramble"])
        student = student_from_json(stored["student"])
        return ClassMixture.from_json(origin.problem), SGD.from_json(stored["sgd"]), student, quadrature
    except (KeyError, TypeError, ValueError):
        return None  # a user's own schedule cannot be rebuilt from a file


def exact_curve(trajectory: Trajectory, name: str) -> Callable[[Any], xr.DataArray] | None:
    """One curve of a theory trajectory as a function of time; None for what is only known where it was recorded."""
    first, alone = trajectory[name].coords["time"].values[:1], None
    rebuilt = theory_of(trajectory) if trajectory.clock == "t" else None
    several = class_theory_of(trajectory) if trajectory.clock == "t" else None
    if rebuilt is not None or several is not None:
        if rebuilt is not None:
            alone = predict(*rebuilt, first, curves=(name,)).evaluate
        elif several is not None:
            problem, sgd, student, nodes = several
            alone = predict(problem, sgd, first, (name,), student, nodes).evaluate
        if alone is not None:
            return lambda times: alone(np.atleast_1d(times))[name]
    whole = trajectory.evaluate
    return None if whole is None else lambda times: whole(np.atleast_1d(times))[name]
