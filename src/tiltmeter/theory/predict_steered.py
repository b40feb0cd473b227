"""The part of `predict` that serves laws of groups."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from tiltmeter.interventions.group_law import GroupLaw
from tiltmeter.names import described
from tiltmeter.population.labelled_curves import chosen_names, label_curves
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.times import checked_times
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.theory.steered_ode import DenseSolution, SteeredODE, solve_grid


def predict_steered(
    problem: Mixture, sgd: SGD, law: GroupLaw, times: np.ndarray, curves: Iterable[str] | None, source: str = "theory"
) -> Trajectory:
    """Curves under a law, with the pulls of all groups; a grid of problems is one system."""
    names = chosen_names(curves, sgd.train_bias, ("pull",))
    origin = Origin(source, problem.to_json(), {"sgd": sgd.to_json()})
    flow = SteeredODE.of(problem, sgd, law)
    states, ended = solve_grid(flow, times)
    if ended is not None:
        warnings.warn(
            f"{int(np.isfinite(ended).sum())} of {flow.par.size} grid points diverge under {type(law).__name__}: the "
            "curves are NaN there, and `diverged` has the times.",
            stacklevel=3,
        )
    elif len(times) > 1 and (note := law.note(*flow.seen(float(times[-1]), states[-1]))):
        warnings.warn(note, stacklevel=3)  # a single time asks about that time, not about the end of training
    solution = DenseSolution(flow)

    def trajectory(at: np.ndarray, found: np.ndarray) -> Trajectory:
        overlaps, pull = flow.curves(at, found)
        made = label_curves(flow.par, overlaps, at, tuple(name for name in names if name != "pull"))
        made["pull"] = described("pull", flow.par.label(pull, "group", time=at))
        gone = None if ended is None else flow.par.label(ended)
        return Trajectory({name: made[name] for name in names}, "t", origin, gone, evaluate)

    def evaluate(at: Any) -> Trajectory:
        at = checked_times(at)
        if ended is not None:
            return trajectory(at, solve_grid(flow, at)[0])
        return trajectory(at, solution.states(at))

    return trajectory(times, states)
