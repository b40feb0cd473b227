"""SteeredTheory: the exact curves of a linear student under a group intervention, as a function of time."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.interventions.group_intervention import GroupIntervention
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.dynamics.ode import Solution, with_resolution
from tiltmeter.theory.dynamics.steered_ode import SteeredODE, solve_grid
from tiltmeter.theory.population.labelled_curves import chosen_names, label_curves
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.times import checked_times


@dataclass(frozen=True, eq=False)
class SteeredTheory:
    """One problem, its SGD and an intervention, solved; a call with times returns the curves there, including the
    pulls.

    >>> import tiltmeter as tm
    >>> sgd = tm.SGD(lr=0.1, interventions=(tm.interventions.Tilted(2.0),))
    >>> theory = steered_theory(tm.theory.cases.centred_crossing().problem, sgd, sgd.law, None, np.array([5.0]))
    >>> theory([1.0], curves=("pull",))["pull"].values.round(4)
    array([[0.8016, 0.1984]])
    """

    sgd: SGD
    names: tuple[str, ...]
    flow: SteeredODE
    _solved: Solution | None
    _origin: Origin

    def __call__(self, times: Any, curves: Iterable[str] | None = None) -> Trajectory:
        """Return the curves (default: those chosen at first) at these times."""
        at = checked_times(times)
        names = self.names if curves is None else chosen_names(curves, self.sgd.train_bias, ("pull",))
        states, ended = self._states(at)
        overlaps, pull = self.flow.curves(at, states)
        found = label_curves(self.flow.par, overlaps, at, names, {"pull": (pull, ("group",))})
        gone = None if ended is None else self.flow.par.label(ended)
        return Trajectory(with_resolution(found, self.flow.resolution), "t", self._origin, gone, self)

    def note(self) -> str:
        """The message of the intervention about the end of training; None for a grid."""
        if self._solved is None:
            return ""
        state = self._solved(np.array([self._solved.end])).reshape(self.flow.start.shape)
        return self.flow.law.note(*self.flow.seen(self._solved.end, state))

    def _states(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """States (T, N, ...) and when grid points diverged."""
        shape = self.flow.start.shape
        if self._solved is not None and times[-1] <= self._solved.end:
            return self._solved(times).reshape(len(times), *shape), None
        states, ended = solve_grid(self.flow, times)
        if ended is not None:
            warnings.warn(
                f"{int(np.isfinite(ended).sum())} of {self.flow.par.size} grid points diverge under "
                f"{type(self.flow.law).__name__}: the curves are NaN there, and `diverged` has the times.",
                stacklevel=4,
            )
        return states, ended


def steered_theory(
    problem: Mixture,
    sgd: SGD,
    law: GroupIntervention,
    curves: Iterable[str] | None,
    times: np.ndarray,
    source: str = "theory",
) -> SteeredTheory:
    """Integrate a problem under an intervention up to the last of `times`; a grid of problems is one system."""
    names = chosen_names(curves, sgd.train_bias, ("pull",))
    origin = Origin(source, problem.to_json(), {"sgd": sgd.to_json()})
    flow = SteeredODE.of(problem, sgd, law)
    if flow.par.grid.sizes:
        # A grid is integrated again for other times, because keeping all its steps would take too much memory.
        return SteeredTheory(sgd, names, flow, None, origin)
    return SteeredTheory(sgd, names, flow, flow.states(times, keep=True)[1], origin)


def gram_limit(problem: Mixture, sgd: SGD, times: Any) -> Trajectory:
    """Return the curves of a `GramIntervention` in the limit 1 << batch << d, where gradients of groups are orthogonal
    noise.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> law = tm.interventions.NormalisedGradient()
    >>> sgd = tm.SGD(lr=0.05, batch=64, interventions=(law,))
    >>> gram_limit(problem, sgd, [0.0, 60.0])["loss"].values[-1].round(4)
    array([0.2155, 0.3399])

    The mean gradient of n_g = batch p_g points has squared length 2 D_g loss_g / n_g (over d) and no overlap with
    those of other groups. So `NormalisedGradient` pulls like sqrt(n_g / (2 D_g loss_g)), and `UPGrad` balances.

    At a finite batch the counts of groups and the squared errors fluctuate; `simulate` includes this, `gram_limit` does
    not.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
        times: Times of the evaluations, in units of t = steps / d.
    """
    if not isinstance(sgd, SGD) or sgd.law is None or not sgd.law.sees_gram:
        raise ValueError(
            "`gram_limit` is for an SGD with an intervention of gradients, as UPGrad(). Found none: use `predict`."
        )
    if len(sgd.interventions) > 1:
        others = ", ".join(type(law).__name__ for law in sgd.interventions if law is not sgd.law)
        raise ValueError(f"`gram_limit` cannot apply {others}. Use `train`.")
    for name, given in (("momentum", sgd.momentum != 0.0), ("clip", sgd.clip is not None)):
        if given:
            raise ValueError(f"`gram_limit` has no solution with {name}. Use `simulate`.")
    at = checked_times(times)
    return steered_theory(problem, sgd, sgd.law, None, at, "gram limit")(at)
