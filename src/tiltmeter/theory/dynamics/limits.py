"""The start and the end of training: initial rates, asymptotes, and who leads there."""

from __future__ import annotations

import numpy as np
import xarray as xr

from tiltmeter.names import NOBODY
from tiltmeter.record.labelled import labels_array
from tiltmeter.theory.dynamics.modes import modes
from tiltmeter.theory.dynamics.ode import plain_pulls, velocity
from tiltmeter.theory.dynamics.stability import divergence
from tiltmeter.theory.population.labelled_curves import OverlapCurves, chosen_names, label_curves, losses
from tiltmeter.theory.problem.applied_interventions import refuse_interventions
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.sgd_arrays import Parameters, parameters

#: Smaller differences are rounding errors: nobody leads.
TIE = 1e-12


def initial_rates(problem: Mixture, sgd: SGD) -> xr.Dataset:
    """Return the time derivatives of loss, M, R and Q at t = 0: which group is learnt faster at first.

    >>> from tiltmeter.theory import cases
    >>> problem, sgd, _ = cases.centred_crossing()
    >>> initial_rates(problem, sgd).loss.values.round(5)
    array([-0.02923, -0.0359 ])

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
    """
    refuse_interventions(sgd, "initial_rates")
    par = parameters(problem, sgd)
    dM, dR, dQ, dloss = _initial(par)
    return xr.Dataset(
        {
            "loss": par.label(dloss, "group"),
            "M": par.label(dM, "group"),
            "R": par.label(dR, "group"),
            "Q": par.label(dQ),
        }
    )


def asymptotes(problem: Mixture, sgd: SGD) -> xr.Dataset:
    """Return every curve of `predict` at t -> infinity.

    >>> from tiltmeter.theory import cases
    >>> problem, sgd, _ = cases.centred_crossing()
    >>> asymptotes(problem, sgd).loss.values.round(4)
    array([0.234 , 0.4416])

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
    """
    par, overlaps = _final(problem, sgd, "asymptotes")
    curves = label_curves(par, overlaps, np.zeros(1), chosen_names(None, sgd.train_bias))
    return xr.Dataset({name: curve.isel(time=0, drop=True) for name, curve in curves.items()})


def first_leader(problem: Mixture, sgd: SGD) -> xr.DataArray:
    """Return the group of lowest loss right after the start (labels over the grid; "" where losses are equal).

    >>> from tiltmeter.theory import cases
    >>> problem, sgd, _ = cases.centred_crossing()
    >>> first_leader(problem, sgd).item()
    '-'

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
    """
    refuse_interventions(sgd, "first_leader")
    par = parameters(problem, sgd)
    start = losses(par, par.M0[:, None], par.R0[:, None], par.Q0[:, None], par.bias0[:, None])[:, 0]
    *_, speed = _initial(par)
    # Lowest loss first; among groups with equal first losses, the one that falls fastest.
    level = start <= start.min(1, keepdims=True) + TIE
    return _leader(par, np.where(level, speed, np.inf))


def final_leader(problem: Mixture, sgd: SGD) -> xr.DataArray:
    """Return the group of lowest loss at t -> infinity (labels over the grid; "" where losses are equal).

    >>> from tiltmeter.theory import cases
    >>> problem, sgd, _ = cases.centred_crossing()
    >>> final_leader(problem, sgd).item()
    '+'

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
    """
    par, overlaps = _final(problem, sgd, "final_leader")
    return _leader(par, overlaps.loss[:, 0])


def _initial(par: Parameters) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    dM, dR, dQ, dbias = velocity(par, par.M0, par.R0, par.Q0, par.bias0, par.lr, *plain_pulls(par, par.s))
    miss = par.M0 + par.bias0[:, None] - par.m
    dloss = miss * (dM + dbias[:, None]) + 0.5 * par.D * dQ[:, None] - np.sqrt(par.D) * par.g * dR
    return dM, dR, dQ, dloss


def _final(problem: Mixture, sgd: SGD, function: str) -> tuple[Parameters, OverlapCurves]:
    refuse_interventions(sgd, function)
    if sgd.scheduled:
        raise ValueError("Asymptotes need a constant learning rate, constant weights and proportions.")
    par = parameters(problem, sgd)
    diverged = divergence(par)
    overlaps = _settled(par)
    if diverged is not None:
        overlaps.blank(np.isfinite(diverged))
    return par, overlaps


def _settled(par: Parameters) -> OverlapCurves:
    solved = modes(par)
    M, R, bias = solved.M[:, :1], solved.R[:, :1], solved.bias[:, :1]
    Q = solved.sources[:, :1] / solved.q[:, None]
    return OverlapCurves(M.copy(), R.copy(), Q, bias.copy(), losses(par, M, R, Q, bias))


def _leader(par: Parameters, values: np.ndarray) -> xr.DataArray:
    """Return the group of the lowest value per grid point; "" if there is no single lowest value."""
    labels = labels_array([*par.groups, NOBODY])
    ordered = np.sort(values, axis=1)
    clear = np.isfinite(ordered[:, 0])
    if values.shape[1] > 1:
        clear &= ~(ordered[:, 1] - ordered[:, 0] <= TIE)
    best = np.where(clear, np.nan_to_num(values, nan=np.inf).argmin(1), -1)
    return par.label(labels[best])
