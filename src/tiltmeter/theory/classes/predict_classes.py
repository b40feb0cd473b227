"""The part of `predict` that serves several classes."""

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
from tiltmeter.theory.dense_integration import DenseSolution


def predict_classes(
    problem: ClassMixture,
    sgd: SGD,
    times: np.ndarray,
    curves: Iterable[str] | None,
    student: Student,
    quadrature: Sobol | None,
) -> Trajectory:
    """Curves of C linear scores: per group, per group and class, and the confusion of classes."""
    if not isinstance(student, (Linear, Softmax)):
        raise ValueError(
            "The theory of several classes is for Linear() and Softmax() students. Train a Network on `samples`."
        )
    data = class_moments(problem, quadrature or moments.NODES)
    settings = class_settings(data, sgd)
    names = chosen_class_curves(curves, sgd.train_bias)
    nodes = None
    if isinstance(student, Softmax):
        nodes = softmax_nodes.softmax_nodes(data, quadrature or softmax_nodes.NODES)
        solution = DenseSolution(
            partial(softmax_velocity, settings, nodes), settings.start, settings.breaks, rtol=1e-6, atol=1e-8
        )
    else:
        _check_stability(settings)
        solution = DenseSolution(partial(square_velocity, settings), settings.start, settings.breaks)
    written = None if quadrature is None else quadrature.to_json()
    described = {"sgd": sgd.to_json(), "student": student.to_json(), "quadrature": written}
    origin = Origin("theory", problem.to_json(), described)

    def evaluate(at: Any) -> Trajectory:
        at = checked_times(at)
        students = ClassStudents(*settings.split(solution(at)))
        found = class_curves(data, students, {"time": at}, names, nodes, quadrature or decisions.NODES)
        return Trajectory(found, "t", origin, None, evaluate)

    return evaluate(times)


def _check_stability(settings: ClassSettings) -> None:
    """The limit of one score holds for each of several: its length obeys the same equation."""
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
