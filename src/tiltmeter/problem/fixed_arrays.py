"""A problem, its training and its fixed training set as plain arrays over a flattened grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from tiltmeter.problem.fixed import Fixed
from tiltmeter.problem.full_batch import Descent, Flow
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.sgd_arrays import Parameters, parameters
from tiltmeter.record.grid import flat


@dataclass(frozen=True)
class FixedParameters:
    """`par` with what the training set adds, over N grid points and G groups.

    alpha: examples per dimension; f: share of wrong labels; m, reach: E[y] and sqrt(D) E[dy/dnu] of the labels that
    are trained on (those of the test are in `par`).
    """

    par: Parameters
    alpha: np.ndarray
    f: np.ndarray
    m: np.ndarray
    reach: np.ndarray

    @property
    def size(self) -> int:
        return self.par.size

    @property
    def tau(self) -> np.ndarray:
        """s_g D_g: what one example of a group adds to the Hessian, per direction."""
        return np.asarray(self.par.s * self.par.D)

    @property
    def started(self) -> bool:
        """Whether the student starts anywhere but at zero."""
        par = self.par
        return bool(par.Q0.any() or par.M0.any() or par.R0.any() or par.bias0.any())


def fixed_parameters(problem: Mixture, training: SGD | Flow | Descent, data: Fixed) -> FixedParameters:
    """Flatten a problem, its training and its data over their common grid."""
    sgd = training if isinstance(training, SGD) else training.plain()
    if sgd.interventions:
        names = ", ".join(type(law).__name__ for law in sgd.interventions)
        drawn = any(getattr(law, "by", None) == "draws" for law in sgd.interventions)
        weigh = ' and by="weights" (a fixed set leaves nothing to draw)' if drawn else ""
        raise ValueError(
            f"There is no theory of {names} on a fixed set. Use `simulate` with the same data, method=Direct(){weigh}."
        )
    groups = problem.groups if isinstance(problem, Mixture) else ()
    shares = data.shares(groups) if isinstance(problem, Mixture) else []
    more = [value for value in (data.samples, *shares) if isinstance(value, xr.DataArray)]
    par = parameters(problem, sgd, more)
    f = np.stack([flat(share, par.grid) for share in shares], axis=1)
    kept = 1.0 - 2.0 * f
    if par.bias0.any() and not par.train_bias:
        raise ValueError("`start` gives a bias that is not trained. On a fixed set, pass train_bias=True with it.")
    return FixedParameters(par, flat(data.samples, par.grid), f, kept * par.m, kept * np.sqrt(par.D) * par.g)
