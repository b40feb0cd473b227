"""The labelled curves of a run, as from `predict`, with a dimension `seed`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from tiltmeter.losses import Loss
from tiltmeter.names import described
from tiltmeter.population.labelled_curves import OverlapCurves, label_curves, losses
from tiltmeter.population.network_curves import NetworkOverlaps, label_network_curves
from tiltmeter.problem.geometry import factor
from tiltmeter.problem.objective import ProblemArrays
from tiltmeter.problem.sgd_arrays import Parameters
from tiltmeter.problem.students import Network
from tiltmeter.record.trajectory import LazyCurves
from tiltmeter.simulation.run import Observation
from tiltmeter.simulation.setting import Setting, seed_grid


def counted_rates(
    loss: Loss, point: ProblemArrays, w: np.ndarray, offsets: np.ndarray, test: int, generator: np.random.Generator
) -> dict[str, np.ndarray]:
    """Count loss, error, positive rate, tpr, fpr and ppv per group; NaN for an empty denominator."""
    place = factor(point.gram)
    rank = place.shape[1]
    rows = []
    for g in range(point.groups):
        student = w[point.student[g]]
        x = place[g] + np.sqrt(point.D[g]) * generator.standard_normal((test, rank))
        # Outside the span of means and teachers only the length of the student matters.
        outside = np.sqrt(point.D[g]) * np.linalg.norm(student[rank:]) * generator.standard_normal(test)
        score = x @ student[:rank] + outside + offsets[point.student[g]]
        y = np.where(x @ place[point.groups + g] + point.offset[g] > 0, 1.0, -1.0)
        decided, positive = score > 0, y > 0
        rows.append(
            [
                loss.value(score, y).mean(),
                np.mean(decided != positive),
                np.mean(decided),
                _share(decided, positive),
                _share(decided, ~positive),
                _share(positive, decided),
            ]
        )
    return dict(zip(("loss", "error", "positive_rate", "tpr", "fpr", "ppv"), np.array(rows).T, strict=True))


def _share(what: np.ndarray, among: np.ndarray) -> float:
    return float(what[among].mean()) if among.any() else float("nan")


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
