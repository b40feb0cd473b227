"""Pulls of the groups: whether some remove the first gap, and which make the groups end equal."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import xarray as xr
from scipy.optimize import brentq, linprog

import tiltmeter as tm

#: With a smaller pull, a group counts as left out.
LEAST = 1e-9
#: Smaller differences are rounding errors.
TIE = 1e-12
#: A learning rate at which the noise of the steps is below rounding errors.
SMALL = 1e-15
#: Number of pulls at which the gap is evaluated before roots are found between them.
TRIED = 400
#: Pulls of the first group lie between this and one minus this.
EDGE = 1e-4


def _check_free(problem: tm.theory.Mixture, sgd: tm.SGD, function: str) -> None:
    if sgd.interventions:
        names = ", ".join(type(law).__name__ for law in sgd.interventions)
        raise ValueError(f"`{function}` looks for the pulls itself, without {names}. Use `predict`.")
    if problem.grid().sizes:
        raise ValueError(f"`{function}` is for one problem. Found a grid over {', '.join(map(str, problem.grid()))}.")


@dataclass(frozen=True)
class FirstGap:
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


def first_gap(problem: tm.theory.Mixture, sgd: tm.SGD, small_steps: bool = True) -> FirstGap:
    """Test whether some weighting of the groups removes the first gap of a problem.

    >>> first_gap(tm.teacher_mixture(rho=0.8, variance=(0.5, 1.0), overlap=0.7), tm.SGD(lr=0.1)).removable
    True
    >>> print(first_gap(tm.teacher_mixture(rho=0.8, variance=(0.5, 1.0), overlap=0.72), tm.SGD(lr=0.1)))
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
    _check_free(problem, sgd, "first_gap")
    number = len(problem.groups)
    if number < 2:
        raise ValueError("A gap needs at least two groups. Found one.")
    begin = tm.predict(problem, sgd, [0.0], ("loss",))["loss"].isel(time=0).values
    if begin.max() - begin.min() > TIE:
        ahead, behind = problem.groups[int(begin.argmin())], problem.groups[int(begin.argmax())]
        return FirstGap(False, None, None, f"No: {ahead!r} is ahead of {behind!r} before the first step.")
    speeds = _speeds(problem, sgd, small_steps)
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
        return FirstGap(False, None, None, _why_not(problem.groups, speeds))
    P = found.x[:number]
    speed = float(speeds[0] @ P)
    pulls = {g: float(x) for g, x in zip(problem.groups, P, strict=True)}
    said = ", ".join(f"{g!r} {x:.3g}" for g, x in pulls.items())
    harm = "" if speed < 0 else " But no loss falls under them."
    return FirstGap(True, pulls, speed, f"Yes: with pulls {said} all groups learn equally fast at first.{harm}")


def _speeds(problem: tm.theory.Mixture, sgd: tm.SGD, small_steps: bool) -> np.ndarray:
    """Return a_gh: the effect of the pull of group h on the loss of g at the start, over lr."""
    lr = SMALL if small_steps else float(sgd.lr)  # type: ignore[arg-type]
    columns = []
    for pulled in problem.groups:
        alone = {group: float(group == pulled) for group in problem.groups}
        rates = tm.theory.initial_rates(problem, replace(sgd, lr=lr, weights=None, proportions=alone))
        columns.append(rates["loss"].values / lr)
    return np.stack(columns, axis=1)


def _why_not(groups: tuple[Hashable, ...], speeds: np.ndarray) -> str:
    """Name a pair of groups of which one is always faster, if there is one."""
    for i, one in enumerate(groups):
        for j, other in enumerate(groups):
            if i != j and (speeds[i] <= speeds[j] + TIE).all() and (speeds[i] < speeds[j] - TIE).any():
                return f"No: whatever the pulls, {one!r} learns faster than {other!r} at first."
    return "No: no positive pulls make all groups learn equally fast at first."


def equalising_pulls(
    problem: tm.theory.Mixture, sgd: tm.SGD, by: Literal["weights", "draws"] = "draws"
) -> tuple[dict[Hashable, float], ...]:
    """Return all constant pulls of two groups with which their losses are equal at t -> infinity; there may be none.

    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> [{group: round(P, 3) for group, P in pulls.items()} for pulls in equalising_pulls(problem, tm.SGD(lr=1e-6))]
    [{'+': 0.634, '-': 0.366}]

    For two groups without means and lr -> 0, the final losses are equal if and only if P_g is proportional to 1 /
    sqrt(D_g), whatever the shares and the teachers. A finite lr, or means, change this.

    Equal losses need not be low: if there are several solutions, compare their losses. The losses may still differ
    during training.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
        by: Whether pulls are applied as "weights" or as "draws", which differ in their noise.
    """
    if by not in ("weights", "draws"):
        raise ValueError(f'`by` should be "weights" or "draws". Found by = {by!r}.')
    _check_free(problem, sgd, "equalising_pulls")
    if sgd.weights or sgd.proportions or callable(sgd.lr):
        raise ValueError(
            "`equalising_pulls` searches the pulls itself, at a constant lr: leave out schedules and weights."
        )
    if len(problem.groups) != 2:
        raise ValueError(f"`equalising_pulls` is for two groups. Found {len(problem.groups)}.")
    first, second = problem.groups
    p = problem.weight.values

    def gaps(P: np.ndarray) -> np.ndarray:
        given = xr.DataArray(P, dims="pull", coords={"pull": np.arange(len(P))})
        if by == "draws":
            pulled_sgd = replace(sgd, proportions={first: given, second: 1.0 - given})
        else:
            pulled_sgd = replace(sgd, weights={first: given / p[0], second: (1.0 - given) / p[1]})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # pulls at which training diverges are no solutions
            losses = tm.theory.asymptotes(problem, pulled_sgd)["loss"]
        return np.asarray(losses.sel(group=first) - losses.sel(group=second))

    tried = np.linspace(EDGE, 1.0 - EDGE, TRIED)
    values = gaps(tried)
    places = np.flatnonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0)
    roots = [brentq(lambda P: float(gaps(np.array([P]))[0]), tried[i], tried[i + 1], xtol=1e-13) for i in places]
    exact = tried[values == 0.0].tolist()
    return tuple({first: float(P), second: float(1.0 - P)} for P in sorted([*roots, *exact]))
