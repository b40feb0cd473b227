"""The labelled curves of a run, as from `predict`, with a dimension `seed`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from tiltmeter.names import described
from tiltmeter.population.labelled_curves import OverlapCurves, label_curves, losses
from tiltmeter.population.network_curves import NetworkOverlaps, label_network_curves
from tiltmeter.problem.sgd_arrays import Parameters
from tiltmeter.problem.students import Network
from tiltmeter.record.trajectory import LazyCurves
from tiltmeter.simulation.run import Observation
from tiltmeter.simulation.setting import Setting, seed_grid

#: Curves that are measured, not computed from overlaps.
OBSERVED = ("training_loss", "training_error", "pull")


def curves_of(
    setting: Setting, seeds: tuple[int, ...], evaluation: Observation, times: np.ndarray, names: tuple[str, ...]
) -> LazyCurves:
    """Return the named curves of evaluations that have a time axis."""
    par = _for_each_seed(setting.par, seeds)
    exact = tuple(name for name in names if name not in OBSERVED)
    student = setting.student
    if isinstance(student, Network):
        overlaps = NetworkOverlaps(evaluation.M, evaluation.R, evaluation.Q, evaluation.second, evaluation.bias)
        curves = label_network_curves(par, overlaps, student.activation, times, exact)
    else:
        M, R, Q = (
            np.ascontiguousarray(x) for x in (evaluation.M[..., 0], evaluation.R[..., 0], evaluation.Q[..., 0, 0])
        )
        linear = OverlapCurves(M, R, Q, evaluation.bias, losses(par, M, R, Q, evaluation.bias))
        curves = label_curves(par, linear, times, exact)
    observed = {
        name: described(name, par.label(getattr(evaluation, name), "group", time=times))
        for name in OBSERVED
        if name in names and getattr(evaluation, name) is not None
    }
    return LazyCurves({name: observed.get(name, partial(curves.__getitem__, name)) for name in names})


def _for_each_seed(par: Parameters, seeds: tuple[int, ...]) -> Parameters:
    prior, D, a, m, g = (np.repeat(x, len(seeds), axis=0) for x in (par.prior, par.D, par.a, par.m, par.g))
    return replace(par, grid=seed_grid(seeds), prior=prior, D=D, a=a, m=m, g=g)
