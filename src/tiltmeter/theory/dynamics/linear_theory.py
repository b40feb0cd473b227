"""LinearTheory: the exact curves of a linear student as a function of time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.dynamics.modes import Modes, evaluate_modes, modes
from tiltmeter.theory.dynamics.ode import RESOLUTION, Solution, overlaps_of, solve, with_resolution
from tiltmeter.theory.dynamics.stability import divergence
from tiltmeter.theory.population.labelled_curves import OverlapCurves, chosen_names, label_curves
from tiltmeter.theory.problem.applied_interventions import lowered
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.sgd_arrays import Parameters, parameters
from tiltmeter.theory.problem.times import checked_times


@dataclass(frozen=True, eq=False)
class LinearTheory:
    """One problem and its SGD, solved; a call with times returns the curves there. The `evaluate` of a trajectory.

    >>> from tiltmeter.theory import cases
    >>> problem, sgd, _ = cases.centred_crossing()
    >>> linear_theory(problem, sgd)([1.0], curves=("loss",))["loss"].values.round(4)
    array([[0.4724, 0.4673]])
    """

    problem: Mixture
    sgd: SGD
    names: tuple[str, ...]
    _par: Parameters
    _plain: SGD
    _solved: Modes | Solution | None
    _diverged: np.ndarray | None
    _origin: Origin

    def __call__(self, times: Any, curves: Iterable[str] | None = None) -> Trajectory:
        """Return the curves (default: those chosen at first) at these times."""
        at = checked_times(times)
        names = self.names if curves is None else chosen_names(curves, self.sgd.train_bias, _more(self.sgd))
        overlaps = self._overlaps(at)
        pull = np.broadcast_to(self._par.pull[:, None], overlaps.loss.shape)
        found = label_curves(self._par, overlaps, at, names, {"pull": (pull, ("group",))})
        if not isinstance(self._solved, Modes):
            found = with_resolution(found, RESOLUTION)
        ended = None if self._diverged is None else self._par.label(self._diverged)
        return Trajectory(found, "t", self._origin, ended, self)

    def _overlaps(self, times: np.ndarray) -> OverlapCurves:
        if isinstance(self._solved, Modes):
            overlaps = evaluate_modes(self._par, self._solved, times)
            if self._diverged is not None:
                overlaps.blank(np.isfinite(self._diverged))
            return overlaps
        if self._solved is not None and times[-1] <= self._solved.end:
            return overlaps_of(self._par, self._solved(times))
        return overlaps_of(self._par, solve(self._par, self._plain, times)[0])


def linear_theory(
    problem: Mixture, sgd: SGD, curves: Iterable[str] | None = None, times: np.ndarray | None = None
) -> LinearTheory:
    """Solve a problem: in closed form or, with schedules, by integration up to the last of `times`."""
    names = chosen_names(curves, sgd.train_bias, _more(sgd))
    origin = Origin("theory", problem.to_json() if isinstance(problem, Mixture) else None, {"sgd": sgd.to_json()})
    par, plain = parameters(problem, sgd), lowered(problem, sgd)
    if not plain.scheduled:
        diverged = divergence(par)
        return LinearTheory(problem, sgd, names, par, plain, modes(par), diverged, origin)
    # A grid is integrated again for other times, because keeping all its steps would take too much memory.
    kept = None if times is None or par.size > 1 else solve(par, plain, times, keep=True)[1]
    return LinearTheory(problem, sgd, names, par, plain, kept, None, origin)


def _more(sgd: SGD) -> tuple[str, ...]:
    """Curves that a constant intervention adds."""
    return () if sgd.law is None else ("pull",)
