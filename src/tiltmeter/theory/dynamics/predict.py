"""predict: the exact curves of every group, for any number of groups, at any times."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tiltmeter.arguments import checked_kind, checked_names
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.dynamics.classes.predict_classes import predict_classes
from tiltmeter.theory.dynamics.fixed_set.fixed_theory import fixed_theory
from tiltmeter.theory.dynamics.linear_theory import LinearTheory, linear_theory
from tiltmeter.theory.dynamics.modes import Modes, evaluate_modes, modes
from tiltmeter.theory.dynamics.network import network_theory
from tiltmeter.theory.dynamics.ode import with_resolution
from tiltmeter.theory.dynamics.steered_theory import SteeredTheory, steered_theory
from tiltmeter.theory.population.labelled_curves import chosen_names, label_curves
from tiltmeter.theory.population.network_curves import label_network_curves
from tiltmeter.theory.population.quadrature import Sobol
from tiltmeter.theory.problem.applied_interventions import refuse_interventions
from tiltmeter.theory.problem.class_mixture import ClassMixture
from tiltmeter.theory.problem.fixed import Fixed
from tiltmeter.theory.problem.full_batch import Descent, Flow
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.sgd_arrays import Parameters, parameters
from tiltmeter.theory.problem.students import Linear, Network, Student, checked_student, refuse_softmax
from tiltmeter.theory.problem.times import DEFAULT_TIMES, checked_times


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


def solved_theory(
    problem: Mixture, sgd: SGD, curves: Iterable[str] | None, times: np.ndarray
) -> LinearTheory | SteeredTheory:
    """Solve in closed form or by integration; with a group intervention, integrate its state too."""
    if sgd.law is not None and not sgd.law.constant and isinstance(problem, Mixture):
        return steered_theory(problem, sgd, sgd.law, curves, times)
    return linear_theory(problem, sgd, curves, times)


def predict(
    problem: Mixture | ClassMixture,
    sgd: SGD | Flow | Descent,
    times: Any = None,
    curves: Iterable[str] | None = None,
    student: Student = Linear(),
    quadrature: Sobol | None = None,
    data: Fixed | None = None,
) -> Trajectory:
    """Return the exact learning curves of the student in the limit of many dimensions, with t = steps/d.

    >>> from tiltmeter import teacher_mixture, SGD
    >>> problem = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> theory = predict(problem, SGD(lr=0.1), [0.0, 1.0, 500.0])
    >>> theory["loss"].sel(group="-").values.round(4)
    array([0.5   , 0.4673, 0.4416])

    A labelled grid in `problem` or `sgd` adds its dimensions to every curve. A learning rate at or above the stability
    limit raises an error; at points of a grid the curves are NaN, with a warning and an entry in `diverged`.

    An intervention of groups among `sgd.interventions` is integrated with the student, and a curve `pull` says what
    every group counts; constant interventions stay in closed form.

    For a student `Network` the equations of motion are integrated: erf units by closed Gaussian integrals, others by
    the fixed nodes of `quadrature` (default `Sobol()`). The spread over `Sobol(scramble=...)` estimates the error.

    With `data=Fixed(samples)` the student is trained on a fixed set of n = samples d examples, by gradient `Flow`,
    full-batch `Descent` (where `times` are steps) or `SGD`. Then there are also curves of the training set.

    >>> from tiltmeter import Fixed, Flow
    >>> few = predict(problem, Flow(lr=1.0), [0.5, 50.0], data=Fixed(samples=2.0))
    >>> few["loss"].sel(group="-").values.round(4), few["training_loss"].sel(group="-").values.round(4)
    (array([0.4144, 1.1784]), array([0.2207, 0.101 ]))

    A `ClassMixture` has several classes: curves per class too, and a `Linear()` or `Softmax()` student of C scores.

    These are averages over the whole population at infinite d; one run at finite d scatters around them (`simulate`).

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
        times: Times of the evaluations, t = steps / d; steps for `Descent`. None: 400 from 0.01 to 200, even in
            log time.
        curves: Curves to compute, see `docs/names.md`; None: all. Fewer are faster.
        student: Model that learns, one of `tm.theory.students`.
        quadrature: Nodes of averages without closed form; None: `Sobol()`.
        data: Fixed training set; None: every example is fresh.
    """
    if quadrature is not None:
        checked_kind("quadrature", quadrature, Sobol, "a Sobol, or None")
    if curves is not None:
        curves = checked_names("curves", curves)
    if times is None and isinstance(sgd, Descent):
        raise ValueError("`times` should be the steps of `Descent` to evaluate after. Found None.")
    times = checked_times(DEFAULT_TIMES if times is None else times)
    student = checked_student(student)
    if isinstance(problem, ClassMixture):
        if data is not None or not isinstance(sgd, SGD):
            raise ValueError("Several classes have SGD on fresh examples only. Train on `samples` with `train`.")
        return predict_classes(problem, sgd, times, curves, student, quadrature)
    refuse_softmax(student)
    if data is not None:
        if not isinstance(data, Fixed):
            raise TypeError(f"`data` should be a Fixed(samples=...), or None for fresh examples. Found {data!r}.")
        if isinstance(student, Network):
            raise ValueError("`predict` has no exact solution for networks on a fixed set. Use `simulate`.")
        return fixed_theory(problem, sgd, data, curves)(times)
    if isinstance(sgd, Flow):
        if isinstance(student, Network):
            raise ValueError("`predict` has gradient flow for the linear student only. Use SGD with a small lr.")
        return population_flow(problem, sgd, curves)(times)
    if isinstance(sgd, Descent):
        raise ValueError("Descent needs a training set: pass data=Fixed(samples=...).")
    _refuse_what_needs_simulation(sgd)
    if isinstance(student, Network):
        return predict_network(problem, sgd, times, curves, student, quadrature)
    theory = solved_theory(problem, sgd, curves, times)
    if isinstance(theory, SteeredTheory) and (note := theory.note()):
        warnings.warn(note, stacklevel=2)
    return theory(times)


def _refuse_what_needs_simulation(sgd: SGD) -> None:
    if not isinstance(sgd, SGD):
        raise TypeError(f"`sgd` should be an SGD(lr=...). Found {type(sgd).__name__}.")
    for name, given in (("momentum", sgd.momentum != 0.0), ("clip", sgd.clip is not None)):
        if given:
            raise ValueError(f"`predict` has no exact solution with {name}. Use `simulate`.")
    refuse_interventions(sgd, "predict", group_interventions=True)


@dataclass(frozen=True, eq=False)
class PopulationFlow:
    """A problem and its flow, solved; a call with times returns the curves there. The `evaluate` of a trajectory.

    >>> from tiltmeter.theory import cases
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
