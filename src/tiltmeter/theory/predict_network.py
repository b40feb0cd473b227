"""The part of `predict` for student networks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tiltmeter.population.labelled_curves import chosen_names
from tiltmeter.population.network_curves import label_network_curves
from tiltmeter.population.quadrature import Sobol
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.student import Network
from tiltmeter.problem.times import checked_times
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.network import network_theory
from tiltmeter.theory.piecewise_integration import with_resolution


def predict_network(
    problem: Mixture,
    sgd: SGD,
    times: np.ndarray,
    curves: Iterable[str] | None,
    student: Network,
    quadrature: Sobol | None,
) -> Trajectory:
    """Curves of a network: M, R and Q have a dimension `unit`, and there is a curve `second_layer`."""
    if sgd.law is not None and not sgd.law.constant:
        raise ValueError(f"`predict` applies {type(sgd.law).__name__} to linear students only. Use `simulate`.")
    names = chosen_names(curves, sgd.train_bias, ("second_layer",))
    theory = network_theory(problem, sgd, student, quadrature)
    nodes = None if quadrature is None else quadrature.to_json()
    settings = {"sgd": sgd.to_json(), "student": student.to_json(), "quadrature": nodes}
    origin = Origin("theory", problem.to_json(), settings)

    solved = theory.solve(times)

    def evaluate(times: Any, curves: Iterable[str] | None = None) -> Trajectory:
        at = checked_times(times)
        wanted = names if curves is None else chosen_names(curves, sgd.train_bias, ("second_layer",))
        overlaps = theory.overlaps((solved if at[-1] <= solved.end else theory.solve(at))(at))
        found = label_network_curves(theory.par, overlaps, student.activation, at, wanted, quadrature)
        return Trajectory(with_resolution(found, theory.resolution), "t", origin, None, evaluate)

    return evaluate(times)
