"""The start and the end of training: initial rates, asymptotes, who leads there, and weights that make it even."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.optimize import linprog

from tiltmeter.names import NOBODY
from tiltmeter.population.labelled_curves import OverlapCurves, chosen_names, label_curves, losses
from tiltmeter.problem.applied_interventions import refuse_interventions
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.sgd_arrays import Parameters, parameters
from tiltmeter.record.labelled import labels_array
from tiltmeter.shown_text import NotebookText
from tiltmeter.theory.modes import modes
from tiltmeter.theory.ode import plain_pulls, velocity
from tiltmeter.theory.stability import divergence

#: With a smaller pull, a group counts as left out.
LEAST = 1e-9


#: Smaller differences are rounding errors: nobody leads.
TIE = 1e-12


def initial_rates(problem: Mixture, sgd: SGD) -> xr.Dataset:
    """Return the time derivatives of loss, M, R and Q at t = 0: which group is learnt faster at first.

    >>> from tiltmeter.problem import cases
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

    >>> from tiltmeter.problem import cases
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

    >>> from tiltmeter.problem import cases
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

    >>> from tiltmeter.problem import cases
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


def final_losses(par: Parameters) -> np.ndarray:
    """Return group losses (N, G) at t -> infinity; they are valid only below the stability limit."""
    return _settled(par).loss[:, 0]


def _leader(par: Parameters, values: np.ndarray) -> xr.DataArray:
    """Return the group of the lowest value per grid point; "" if there is no single lowest value."""
    labels = labels_array([*par.groups, NOBODY])
    ordered = np.sort(values, axis=1)
    clear = np.isfinite(ordered[:, 0])
    if values.shape[1] > 1:
        clear &= ~(ordered[:, 1] - ordered[:, 0] <= TIE)
    best = np.where(clear, np.nan_to_num(values, nan=np.inf).argmin(1), -1)
    return par.label(labels[best])


@dataclass(frozen=True)
class FirstGap(NotebookText):
    """Whether there are positive pulls with which all losses fall at the same speed at first.

    `pulls` are such pulls, the ones with the largest smallest pull; None if there are none. `speed` is dloss/dt over lr
    with these pulls.
    """

    removable: bool
    pulls: dict[Hashable, float] | None
    speed: float | None
    reason: str

    def __str__(self) -> str:
        return self.reason


def first_gap(problem: Mixture, sgd: SGD, small_steps: bool = True) -> FirstGap:
    """Test whether some weighting of the groups removes the first gap of a problem.

    >>> from tiltmeter import SGD, teacher_mixture
    >>> first_gap(teacher_mixture(rho=0.8, variance=(0.5, 1.0), overlap=0.7), SGD(lr=0.1)).removable
    True
    >>> print(first_gap(teacher_mixture(rho=0.8, variance=(0.5, 1.0), overlap=0.72), SGD(lr=0.1)))
    No: whatever the pulls, '-' learns faster than '+' at first.

    At the start the loss of group g changes at the speed sum_h P_h a_gh, which is linear in the pulls. Whether positive
    pulls make all speeds equal is decided by a linear programme, exact for any number of groups, means and start.
    `small_steps` takes lr -> 0; otherwise the noise at this lr is included, for groups that are *drawn* by their pulls.

    For two groups without means and a start from zero, the gap can be removed if and only if the overlap of the
    teachers is below the square root of the smaller variance over the larger. Above it, whatever helps any group helps
    the group of larger variance more.

    It says nothing about later gaps: see `equalising_pulls` for the end and `optimal_schedule` for the whole training.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
        small_steps: Whether lr -> 0 is taken; otherwise the noise at this learning rate is included.
    """
    refuse_interventions(sgd, "first_gap")
    par = parameters(problem, sgd)
    if par.grid.sizes:
        raise ValueError(f"`first_gap` is for one problem. Found a grid over {', '.join(map(str, par.grid.sizes))}.")
    number = len(par.groups)
    if number < 2:
        raise ValueError("A gap needs at least two groups. Found one.")
    begin = losses(par, par.M0[:, None], par.R0[:, None], par.Q0[:, None], par.bias0[:, None])[0, 0]
    if begin.max() - begin.min() > TIE:
        ahead, behind = par.groups[int(begin.argmin())], par.groups[int(begin.argmax())]
        return FirstGap(False, None, None, f"No: {ahead!r} is ahead of {behind!r} before the first step.")
    speeds = _speeds(par, small_steps)
    # Largest smallest pull among those that sum to one and make all speeds equal.
    level = np.concatenate([speeds - speeds[:1], np.zeros((number, 1))], axis=1)[1:]
    whole = np.append(np.ones(number), 0.0)[None]
    held = np.concatenate([-np.eye(number), np.ones((number, 1))], axis=1)
    found = linprog(
        np.append(np.zeros(number), -1.0),
        A_ub=held,
        b_ub=np.zeros(number),
        A_eq=np.concatenate([level, whole]),
        b_eq=np.append(np.zeros(number - 1), 1.0),
        bounds=[(0.0, 1.0)] * number + [(None, 1.0)],
    )
    if not found.success or found.x is None or found.x[-1] <= LEAST:
        return FirstGap(False, None, None, _why_not(par, speeds))
    P = found.x[:number]
    speed = float(speeds[0] @ P)
    pulls = {g: float(x) for g, x in zip(par.groups, P, strict=True)}
    said = ", ".join(f"{g!r} {x:.3g}" for g, x in pulls.items())
    harm = "" if speed < 0 else " But no loss falls under them."
    return FirstGap(True, pulls, speed, f"Yes: with pulls {said} all groups learn equally fast at first.{harm}")


def _speeds(par: Parameters, small_steps: bool) -> np.ndarray:
    """Return a_gh: the effect of the pull of group h on the loss of g at the start, over lr."""
    number = len(par.groups)
    lr, found = par.lr, np.empty((number, number))
    for h in range(number):
        P = np.eye(number)[h][None]
        N = np.zeros_like(P) if small_steps else P / par.batch[:, None]
        dM, dR, dQ, dbias = velocity(par, par.M0, par.R0, par.Q0, par.bias0, lr, P, N)
        miss = par.M0 + par.bias0[:, None] - par.m
        change = miss * (dM + dbias[:, None]) + 0.5 * par.D * dQ[:, None] - np.sqrt(par.D) * par.g * dR
        found[:, h] = change[0] / lr[0]
    return found


def _why_not(par: Parameters, speeds: np.ndarray) -> str:
    """Name a pair of groups of which one is always faster, if there is one."""
    for i, one in enumerate(par.groups):
        for j, other in enumerate(par.groups):
            if i != j and (speeds[i] <= speeds[j] + TIE).all() and (speeds[i] < speeds[j] - TIE).any():
                return f"No: whatever the pulls, {one!r} learns faster than {other!r} at first."
    return "No: no positive pulls make all groups learn equally fast at first."
