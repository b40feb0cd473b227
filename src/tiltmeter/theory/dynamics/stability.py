"""The stability limit of the learning rate and the time scales below it."""

from __future__ import annotations

import warnings

import numpy as np
import xarray as xr

from tiltmeter.theory.dynamics.fixed_set.limits import fixed_limit
from tiltmeter.theory.dynamics.modes import modes
from tiltmeter.theory.problem.applied_interventions import refuse_interventions
from tiltmeter.theory.problem.fixed import Fixed, fixed_parameters
from tiltmeter.theory.problem.full_batch import Descent, Flow
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.sgd_arrays import Parameters, parameters

LIMIT = "stability limit of the learning rate"


def stability_limit(problem: Mixture, sgd: SGD | Flow | Descent, data: Fixed | None = None) -> xr.DataArray:
    """Return the learning rate at and above which the student's length grows without bound.

    >>> from tiltmeter import teacher_mixture, SGD
    >>> stability_limit(teacher_mixture(rho=0.5, variance=(1.0, 1.0)), SGD(lr=0.1)).item()
    2.0

    lr < 2 batch (sum_g p_g s_g D_g + decay) / sum_g p_g s_g^2 D_g^2, where Q in dQ/dt = -q Q + ... stops decaying.

    On a fixed set, the limit of `Descent` is 2 (1 + momentum) over the largest eigenvalue of the Hessian. The limit of
    SGD with replacement is where the batch noise sustains itself. The limit of shuffled epochs is where a disturbance
    neither grows nor decays from epoch to epoch (found to about 0.1 %).

    >>> from tiltmeter import Fixed
    >>> problem = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> round(stability_limit(problem, SGD(lr=0.1), Fixed(2.0, replace=True)).item(), 3)
    1.754

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
        data: Fixed training set; None: every example is fresh.
    """
    if data is not None:
        fixed = fixed_parameters(problem, sgd, data)
        return fixed.par.label(fixed_limit(fixed, sgd, data)).assign_attrs(long_name=LIMIT)
    if isinstance(sgd, Descent):
        raise ValueError("Descent needs a training set: pass data=Fixed(samples=...).")
    if isinstance(sgd, Flow):
        raise ValueError("Gradient flow has no stability limit: it is the limit of small steps.")
    refuse_interventions(sgd, "stability_limit")
    par = parameters(problem, sgd)
    return par.label(limit_of(par)).assign_attrs(long_name=LIMIT)


def limit_of(par: Parameters) -> np.ndarray:
    P = par.p * par.s
    with np.errstate(divide="ignore"):
        return np.asarray(2.0 * par.batch * ((P * par.D).sum(1) + par.decay) / (par.p * par.s**2 * par.D**2).sum(1))


def divergence(par: Parameters) -> np.ndarray | None:
    """Return the times of divergence over the grid (NaN: none), or None if all is stable; a single problem raises."""
    limit = limit_of(par)
    beyond = par.lr >= limit
    if not beyond.any():
        return None
    worst = int(np.argmax(par.lr / limit))
    if not par.grid.sizes:
        raise ValueError(
            f"`lr` should lie below the stability limit {limit[0]:.6g} of this problem. Found lr = {par.lr[0]:g}: "
            "training diverges."
        )
    warnings.warn(
        f"{int(beyond.sum())} of {par.size} grid points have `lr` at or above their stability limit (for example "
        f"lr = {par.lr[worst]:g} against {limit[worst]:.4g}): training diverges there, and the curves are NaN.",
        stacklevel=4,
    )
    return np.where(beyond, 0.0, np.nan)


def timescales(problem: Mixture, sgd: SGD) -> xr.Dataset:
    """Return the time scales of learning along the means (M), across them (R), and of the student's length (Q).

    >>> from tiltmeter.theory import cases
    >>> problem, sgd, _ = cases.three_phases()
    >>> scales = timescales(problem, sgd)
    >>> [scales[name].values.round(2).tolist() for name in ("M", "R", "Q")]
    [[0.46], 5.41, 3.41]

    For the two-group model tau_M = 1/(lr (shift + D)), tau_R = 1/(lr D) and tau_Q = 1/(lr (2 D - lr D2)), with D and D2
    the mean variance and mean squared variance. M has a dimension `mode`: with more groups, or a trained bias, there is
    one time scale per direction of the means, the fastest first. Without shift it equals that of R.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
    """
    refuse_interventions(sgd, "timescales")
    if sgd.scheduled:
        raise ValueError("`timescales` needs a constant learning rate, constant weights and proportions.")
    par = parameters(problem, sgd)
    solved = modes(par)
    along = np.sort(solved.rates[:, 1:-1], axis=1)[:, ::-1]
    across = solved.rates[:, -1]
    # Directions orthogonal to the means relax like R: keep only those that differ somewhere.
    differs = (np.abs(along / across[:, None] - 1.0) > 1e-12).any(0)
    keep = np.flatnonzero(differs) if differs.any() else np.array([0])
    with np.errstate(divide="ignore"):
        Q = np.where(solved.q > 0, 1.0 / solved.q, np.nan)
    slowest_last = 1.0 / along[:, keep]
    return xr.Dataset(
        {
            "M": par.label(slowest_last, "mode").assign_attrs(long_name="time scale along the means"),
            "R": par.label(1.0 / across).assign_attrs(long_name="time scale across the means"),
            "Q": par.label(Q).assign_attrs(long_name="time scale of the student's length"),
        }
    )
