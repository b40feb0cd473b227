"""Runs of exact theory: what this house knows of a run that it made, fresh or loaded from disk.

The core asks here, by an entry point, when it judges, shows or reports such a run. Without this house the same run is
judged by its recorded values.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, cast

import numpy as np
import xarray as xr

from tiltmeter.leaders.phases import TIMES_IN_PHASE, Cause, mean_over_log_time
from tiltmeter.pairs import Pair
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.drivers import DRIVERS, drivers
from tiltmeter.theory.dynamics.classes.predict_classes import predict_classes
from tiltmeter.theory.dynamics.linear_theory import LinearTheory
from tiltmeter.theory.dynamics.predict import predict
from tiltmeter.theory.dynamics.stability import stability_limit, timescales
from tiltmeter.theory.population.quadrature import Sobol
from tiltmeter.theory.problem.class_mixture import ClassMixture
from tiltmeter.theory.problem.fixed import Fixed
from tiltmeter.theory.problem.full_batch import Flow, Training, training_from_json
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.students import student_from_json


def linear_theory_of(run: Trajectory) -> tuple[Mixture, Training, Fixed | None] | None:
    """Return problem, training and training set of the theory of a linear student; None for anything else."""
    if isinstance(run.evaluate, LinearTheory):
        return run.evaluate.problem, run.evaluate.sgd, None
    origin = run.origin
    if origin.source != "theory" or not isinstance(origin.problem, dict) or "student" in origin.settings:
        return None  # a network's curves have no closed form
    stored: Any = origin.settings.get("sgd")
    data: Any = origin.settings.get("data")
    try:
        training = training_from_json(stored)
        return Mixture.from_json(origin.problem), training, None if data is None else Fixed.from_json(data)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None  # a user's own schedule cannot be rebuilt from a file


def revived(run: Trajectory) -> Trajectory:
    """Return a theory of a linear student loaded from disk with its `evaluate` restored; anything else unchanged."""
    if isinstance(run.origin.problem, dict) and "class_mixture" in run.origin.problem:
        return _several_classes(run)
    theory = linear_theory_of(run)
    if theory is None:
        return run
    problem, training, data = theory
    again = predict(problem, training, [_last_time(run)], tuple(run), data=data).evaluate
    return run.replace(run, again)


def _several_classes(run: Trajectory) -> Trajectory:
    """Return a theory of several classes loaded from disk with its `evaluate` restored."""
    origin, stored = run.origin, cast(Any, run.origin.settings)
    try:
        problem, sgd = ClassMixture.from_json(cast(Any, origin.problem)), SGD.from_json(stored["sgd"])
        student, nodes = student_from_json(stored["student"]), stored["quadrature"]
    except (KeyError, TypeError, ValueError):
        return run  # a user's own schedule cannot be rebuilt from a file
    quadrature = None if nodes is None else Sobol(nodes["count"], nodes["scramble"])
    again = predict_classes(problem, sgd, np.array([_last_time(run)]), tuple(run)[:1], student, quadrature)
    return run.replace(run, again.evaluate)


def _last_time(run: Trajectory) -> float:
    return max((float(curve.coords["time"].values[-1]) for curve in run.values()), default=0.0)


def phase_causes(
    run: Trajectory, pair: Pair, edges: list[tuple[float, float]], leaders: list[Hashable]
) -> list[Cause | None]:
    """The driver of the loss gap in every phase, in words, with the contributions of all drivers."""
    none: list[Cause | None] = [None] * len(edges)
    theory = linear_theory_of(run)
    # An intervention reacts to the gap itself, so drivers cannot be separated.
    if theory is None or getattr(theory[1], "steered", False):
        return none
    times = [np.geomspace(low, high, TIMES_IN_PHASE) if high > low else np.empty(0) for low, high in edges]
    if not any(at.size for at in times):
        return none
    problem, training, data = theory
    try:
        split = drivers(problem, training, np.unique(np.concatenate(times)), pair, data)
    except ValueError:  # without one of its asymmetries the problem is not stable: the cause is not known
        return none

    def cause(at: np.ndarray, leader: Hashable) -> Cause:
        contributions = {name: mean_over_log_time(split[name].sel(time=at)) for name in (*DRIVERS, "rest")}
        sign = float(np.sign(mean_over_log_time(split["loss_gap"].sel(time=at))))
        driver = max(contributions, key=lambda name: contributions[name] * sign)
        behind = pair[1] if leader == pair[0] else pair[0]
        return Cause(driver, _in_words(driver, problem, leader, behind), contributions)

    return [cause(at, leader) if at.size else None for at, leader in zip(times, leaders, strict=True)]


def _in_words(driver: str, problem: Mixture, ahead: Hashable, behind: Hashable) -> str:
    """A driver in words, from the view of the leader."""
    if driver == "shift":
        return "shift and label imbalance"
    if driver == "rest":
        return "teachers, start or loss weights"
    numbers = problem.variance if driver == "variance" else problem.weight
    leading, trailing = (float(numbers.sel(group=group)) for group in (ahead, behind))
    if driver == "variance":
        return "larger variance" if leading > trailing else "smaller variance"
    return "more data" if leading > trailing else "less data"


def scales(run: Trajectory) -> tuple[xr.Dataset | None, xr.DataArray | None]:
    """The time scales of online theory, and the largest stable learning rate, also on a fixed set; else None."""
    theory = linear_theory_of(run)
    if theory is None:
        return None, None
    problem, training, data = theory
    if data is not None:
        return None, None if isinstance(training, Flow) else stability_limit(problem, training, data)
    if not isinstance(training, SGD) or training.steered or training.scheduled:
        return None, None
    return timescales(problem, training), stability_limit(problem, training)
