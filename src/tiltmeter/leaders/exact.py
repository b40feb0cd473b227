"""Exact curves: a theory trajectory, fresh or loaded from disk, evaluated again at any time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import xarray as xr

from tiltmeter.record.trajectory import Trajectory

if TYPE_CHECKING:
    from tiltmeter.problem.fixed import Fixed
    from tiltmeter.problem.full_batch import Training
    from tiltmeter.problem.mixture import Mixture
    from tiltmeter.problem.sgd import SGD

# The theory is imported only for trajectories that came from it: to show a training takes a third of the time.


def linear_theory_of(trajectory: Trajectory) -> tuple[Mixture, Training, Fixed | None] | None:
    """Return problem, training and training set of the theory of a linear student; None for anything else."""
    if trajectory.evaluate is None and trajectory.origin.source != "theory":
        return None
    from tiltmeter.problem.fixed import Fixed
    from tiltmeter.problem.full_batch import training_from_json
    from tiltmeter.problem.mixture import Mixture
    from tiltmeter.theory.linear_theory import LinearTheory

    if isinstance(trajectory.evaluate, LinearTheory):
        return trajectory.evaluate.problem, trajectory.evaluate.sgd, None
    origin = trajectory.origin
    if origin.source != "theory" or not isinstance(origin.problem, dict) or "student" in origin.settings:
        return None  # a network's curves have no closed form
    stored: Any = origin.settings.get("sgd")
    data: Any = origin.settings.get("data")
    try:
        training = training_from_json(stored)
        return Mixture.from_json(origin.problem), training, None if data is None else Fixed.from_json(data)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None  # a user's own schedule cannot be rebuilt from a file


def theory_of(trajectory: Trajectory) -> tuple[Mixture, SGD] | None:
    """Return problem and SGD of online theory (fresh examples, no law); else None."""
    found = linear_theory_of(trajectory)
    if found is None:
        return None
    from tiltmeter.problem.sgd import SGD

    if found[2] is not None or not isinstance(found[1], SGD) or found[1].steered:
        return None
    return found[0], found[1]


def revived(trajectory: Trajectory) -> Trajectory:
    """Return a theory of a linear student loaded from disk with its `evaluate` restored; anything else unchanged."""
    if trajectory.evaluate is not None or trajectory.clock != "t":
        return trajectory
    if isinstance(trajectory.origin.problem, dict) and "class_mixture" in trajectory.origin.problem:
        return _several_classes(trajectory)
    found = linear_theory_of(trajectory)
    if found is None:
        return trajectory
    from tiltmeter.theory.predict import predict

    problem, training, data = found
    last = max((float(curve.coords["time"].values[-1]) for curve in trajectory.values()), default=0.0)
    again = predict(problem, training, [last], tuple(trajectory), data=data).evaluate
    return trajectory.replace(trajectory, again)


def _several_classes(trajectory: Trajectory) -> Trajectory:
    """Return a theory of several classes loaded from disk with its `evaluate` restored."""
    from tiltmeter.population.quadrature import Sobol
    from tiltmeter.problem.class_mixture import ClassMixture
    from tiltmeter.problem.sgd import SGD
    from tiltmeter.problem.students import student_from_json
    from tiltmeter.theory.classes.predict_classes import predict_classes

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
    """Return one curve of a theory as a function of time; None if it is known only at recorded times."""
    evaluate = revived(trajectory).evaluate
    return None if evaluate is None else lambda times: evaluate(np.atleast_1d(times), (name,))[name]
