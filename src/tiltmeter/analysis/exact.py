"""Exact curves: a theory trajectory, fresh or loaded from disk, evaluated again at any time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import xarray as xr

from tiltmeter.population.quadrature import Sobol
from tiltmeter.problem.class_mixture import ClassMixture
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.student import student_from_json
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.classes.predict_classes import predict_classes
from tiltmeter.theory.linear_theory import LinearTheory, linear_theory


def theory_of(trajectory: Trajectory) -> tuple[Mixture, SGD] | None:
    """The problem and SGD behind the theory of a linear student; None for anything else."""
    theory = revived(trajectory).evaluate
    return (theory.problem, theory.sgd) if isinstance(theory, LinearTheory) else None


def revived(trajectory: Trajectory) -> Trajectory:
    """A theory of linear scores that was loaded from disk, with its `evaluate` again; anything else as it is."""
    origin = trajectory.origin
    if trajectory.evaluate is not None or origin.source != "theory" or trajectory.clock != "t":
        return trajectory
    if isinstance(origin.problem, dict) and "class_mixture" in origin.problem:
        return _several_classes(trajectory)
    if not isinstance(origin.problem, dict) or "student" in origin.settings:
        return trajectory  # a network's curves have no closed form
    stored: Any = origin.settings.get("sgd")
    try:
        problem, sgd = Mixture.from_json(origin.problem), SGD.from_json(stored)
    except (KeyError, TypeError, ValueError):
        return trajectory  # a user's own schedule cannot be rebuilt from a file
    last = max((float(curve.coords["time"].values[-1]) for curve in trajectory.values()), default=0.0)
    return trajectory.replace(trajectory, linear_theory(problem, sgd, tuple(trajectory), np.array([last])))


def _several_classes(trajectory: Trajectory) -> Trajectory:
    """A theory of several classes that was loaded from disk, with its `evaluate` again."""
    origin, stored = trajectory.origin, cast(Any, trajectory.origin.settings)
    try:
        problem, sgd = ClassMixture.from_json(cast(Any, origin.problem)), SGD.from_json(stored["sgd"])
        student, nodes = student_from_json(stored["student"]), stored["quadrature"]
    except (KeyError, TypeError, ValueError):
        return trajectory  # a user's own schedule cannot be rebuilt from a file
    quadrature = None if nodes is None else Sobol(nodes["count"], nodes["scramble"])
    last = max((float(curve.coords["time"].values[-1]) for curve in trajectory.values()), default=0.0)
    again = predict_classes(problem, sgd, np.array([last]), tuple(trajectory)[:1], student, quadrature)
    return trajectory.replace(trajectory, again.evaluate)


def exact_curve(trajectory: Trajectory, name: str) -> Callable[[Any], xr.DataArray] | None:
    """One curve of a theory trajectory as a function of time; None for what is only known where it was recorded."""
    evaluate = revived(trajectory).evaluate
    return None if evaluate is None else lambda times: evaluate(np.atleast_1d(times), (name,))[name]
