"""PopulationFlow: gradient flow on the whole population, the limit of SGD for small learning rates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tiltmeter.population.labelled_curves import chosen_names, label_curves
from tiltmeter.problem.full_batch import Flow
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd_arrays import Parameters, parameters
from tiltmeter.problem.times import checked_times
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.modes import Modes, evaluate_modes, modes


@dataclass(frozen=True, eq=False)
class PopulationFlow:
    """A problem and its flow, solved; a call with times returns the curves there. The `evaluate` of a trajectory.

    >>> from tiltmeter.problem import cases
    >>> problem, _, _ = cases.centred_crossing()
    >>> population_flow(problem, Flow(lr=1.0))([0.1], curves=("loss",))["loss"].values.round(4)
    array([[0.4709, 0.4626]])
    """

    names: tuple[str, ...]
    train_bias: bool
    _par: Parameters
    _solved: Modes
    _origin: Origin

    def __call__(self, times: Any, curves: Iterable[str] | None = None) -> Trajectory:
        """Return the curves (default: those chosen at first) at these times."""
        at = checked_times(times)
        names = self.names if curves is None else chosen_names(curves, self.train_bias)
        found = label_curves(self._par, evaluate_modes(self._par, self._solved, at), at, names)
        return Trajectory(found, "t", self._origin, None, self)


def population_flow(problem: Mixture, flow: Flow, curves: Iterable[str] | None = None) -> PopulationFlow:
    """Solve a problem as SGD with a batch so large that there is no noise."""
    names = chosen_names(curves, flow.train_bias)
    par = parameters(problem, flow.plain())
    par = replace(par, batch=np.full(par.size, np.inf))
    origin = Origin("theory", problem.to_json(), {"sgd": flow.to_json()})
    return PopulationFlow(names, flow.train_bias, par, modes(par), origin)
