"""equalising_pulls: the constant pulls of two groups with which their final losses are equal."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Literal

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from tiltmeter.problem.applied_interventions import refuse_interventions
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.sgd_arrays import parameters
from tiltmeter.theory.limits import final_losses
from tiltmeter.theory.stability import limit_of

#: Number of pulls at which the gap is evaluated before roots are found between them.
TRIED = 400
#: Pulls of the first group lie between this and one minus this.
EDGE = 1e-4


def equalising_pulls(
    problem: Mixture, sgd: SGD, by: Literal["weights", "draws"] = "draws"
) -> tuple[dict[Hashable, float], ...]:
    """Return all constant pulls of two groups with which their losses are equal at t -> infinity; there may be none.

    >>> from tiltmeter import SGD, teacher_mixture
    >>> problem = teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> [{group: round(P, 3) for group, P in pulls.items()} for pulls in equalising_pulls(problem, SGD(lr=1e-6))]
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
    refuse_interventions(sgd, "equalising_pulls")
    if by not in ("weights", "draws"):
        raise ValueError(f'`by` should be "weights" or "draws". Found by = {by!r}.')
    if sgd.weights or sgd.scheduled:
        raise ValueError(
            "`equalising_pulls` searches the pulls itself, at a constant lr: leave out schedules and weights."
        )
    par = parameters(problem, sgd)
    if par.grid.sizes:
        raise ValueError(
            f"`equalising_pulls` is for one problem. Found a grid over {', '.join(map(str, par.grid.sizes))}."
        )
    if len(par.groups) != 2:
        raise ValueError(f"`equalising_pulls` is for two groups. Found {len(par.groups)}.")
    first, second = par.groups

    def gaps(P: np.ndarray) -> np.ndarray:
        given = xr.DataArray(P, dims="pull", coords={"pull": np.arange(len(P))})
        if by == "draws":
            asked = replace(sgd, proportions={first: given, second: 1.0 - given})
        else:
            p = par.p[0]
            asked = replace(sgd, weights={first: given / p[0], second: (1.0 - given) / p[1]})
        there = parameters(problem, asked)
        found = final_losses(there)
        return np.where(there.lr < limit_of(there), found[:, 0] - found[:, 1], np.nan)

    tried = np.linspace(EDGE, 1.0 - EDGE, TRIED)
    values = gaps(tried)
    places = np.flatnonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0)
    roots = [brentq(lambda P: float(gaps(np.array([P]))[0]), tried[i], tried[i + 1], xtol=1e-13) for i in places]
    exact = tried[values == 0.0].tolist()
    return tuple({first: float(P), second: float(1.0 - P)} for P in sorted([*roots, *exact]))
