"""first_gap: whether some weighting of groups keeps their losses equal at the start of training."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from tiltmeter.population.labelled_curves import losses
from tiltmeter.problem.applied_interventions import refuse_interventions
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.sgd_arrays import Parameters, parameters
from tiltmeter.shown_text import NotebookText
from tiltmeter.theory.limits import TIE
from tiltmeter.theory.ode import velocity

#: With a smaller pull, a group counts as left out.
LEAST = 1e-9


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
