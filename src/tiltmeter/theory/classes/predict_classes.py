"""The part of `predict` for several classes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from tiltmeter.population.classes import decisions, moments, softmax_nodes
from tiltmeter.population.classes.curves import chosen_class_curves, class_curves
from tiltmeter.population.classes.moments import class_moments
from tiltmeter.population.classes.students import ClassStudents
from tiltmeter.population.quadrature import Sobol
from tiltmeter.problem.class_mixture import ClassMixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.student import Linear, Softmax, Student
from tiltmeter.problem.times import checked_times
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.classes.settings import ClassSettings, class_settings
from tiltmeter.theory.classes.softmax import softmax_velocity
from tiltmeter.theory.classes.square import square_velocity
from tiltmeter.theory.piecewise_integration import Solution, by_pieces, with_resolution


def predict_classes(
    problem: ClassMixture,
    sgd: SGD,
    times: np.ndarray,
    curves: Iterable[str] | None,
    student: Student,
    quadrature: Sobol | None,
) -> Trajectory:
    """Return curves of C linear scores: per group, per group and class, and the confusion of classes."""
    if not isinstance(student, (Linear, Softmax)):
        raise ValueError(
            "The theory of several classes is for Linear() and Softmax() students. Train a Network on `samples`."
        )
    data = class_moments(problem, quadrature or moments.NODES)
    settings = class_settings(data, sgd)
    names = chosen_class_curves(curves, sgd.train_bias)
    nodes = (
        softmax_nodes.softmax_nodes(data, quadrature or softmax_nodes.NODES) if isinstance(student, Softmax) else None
    )
    if nodes is None:
        _check_stability(settings)
    solved = _solve(settings, nodes, times)
    written = None if quadrature is None else quadrature.to_json()
    described = {"sgd": sgd.to_json(), "student": student.to_json(), "quadrature": written}
    origin = Origin("theory", problem.to_json(), described)

    def evaluate(times: Any, curves: Iterable[str] | None = None) -> Trajectory:
        at = checked_times(times)
        wanted = names if curves is None else chosen_class_curves(curves, sgd.train_bias)
        states = (solved if at[-1] <= solved.end else _solve(settings, nodes, at))(at)
        students = ClassStudents(*settings.split(states))
        found = class_curves(data, students, {"time": at}, wanted, nodes, quadrature or decisions.NODES)
        return Trajectory(with_resolution(found, 1e-8 if nodes is None else 1e-5), "t", origin, None, evaluate)

    return evaluate(times)


def _solve(settings: ClassSettings, nodes: softmax_nodes.SoftmaxNodes | None, times: np.ndarray) -> Solution:
    """Return the state as a function of time, up to the last of these times."""
    if nodes is None:
        velocity, rtol, atol = partial(square_velocity, settings), 1e-11, 1e-13
    else:
        velocity, rtol, atol = partial(softmax_velocity, settings, nodes), 1e-6, 1e-8
    _, solved = by_pieces(velocity, settings.start, times, settings.sgd, "DOP853", rtol, atol, keep=True)
    assert solved is not None
    return solved


def _check_stability(settings: ClassSettings) -> None:
    """Check the stability limit: each of several scores has the limit of a single one."""
    if callable(settings.sgd.lr):
        return
    lr, p, s = settings.at(0.0)
    D = settings.data.D
    limit = 2.0 * settings.batch * ((p * s) @ D + settings.decay) / ((p * s**2) @ D**2)
    if lr >= limit:
        raise ValueError(
            f"`lr` should lie below the stability limit {limit:.6g} of this problem. Found lr = {lr:g}: "
            "training diverges."
        )
