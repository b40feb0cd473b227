"""A problem and its SGD as plain arrays over a flattened grid: the input of every method of the theory."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import erf

from tiltmeter.record.labelled import common_grid, labels_array
from tiltmeter.record.labelled import flat as flat_over
from tiltmeter.theory.problem.applied_interventions import lowered
from tiltmeter.theory.problem.mixture import ROUNDING, Mixture
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.starts import Overlaps, Random


@dataclass(frozen=True)
class Parameters:
    """Arrays over N grid points and G groups, in the symbols of the papers.

    p: how often a group is drawn; s: weight of its loss; D: variance; a: label threshold; m = E[y]; g = E[dy/dnu];
    K, C, T: overlaps mean-mean, mean-teacher, teacher-teacher; prior: share of the group in the population.
    """

    groups: tuple[Hashable, ...]
    grid: xr.Dataset
    prior: np.ndarray
    p: np.ndarray
    s: np.ndarray
    D: np.ndarray
    a: np.ndarray
    m: np.ndarray
    g: np.ndarray
    K: np.ndarray
    C: np.ndarray
    T: np.ndarray
    lr: np.ndarray
    batch: np.ndarray
    decay: np.ndarray
    M0: np.ndarray
    R0: np.ndarray
    Q0: np.ndarray
    bias0: np.ndarray
    train_bias: bool

    @property
    def size(self) -> int:
        return len(self.lr)

    @property
    def pull(self) -> np.ndarray:
        """P_g = p_g s_g: what the mean gradient of a group counts."""
        return np.asarray(self.p * self.s)

    @property
    def noise(self) -> np.ndarray:
        """n_g = lr^2 p_g s_g^2 D_g / batch: how much the gradient noise of a group increases the length of the
        student.
        """
        return np.asarray((self.lr**2 / self.batch)[:, None] * self.p * self.s**2 * self.D)

    def label(self, values: np.ndarray, *dims: str, time: np.ndarray | None = None) -> xr.DataArray:
        """Values of shape (N, [time,] ...) as a labelled array with dims ([time,] *dims, *grid); a view, not a copy."""
        names = (*(("time",) if time is not None else ()), *dims)
        shaped = values.reshape(tuple(self.grid.sizes.values()) + values.shape[1:])
        ahead = len(self.grid.sizes)
        order = (*range(ahead, shaped.ndim), *range(ahead))
        coords: dict[Hashable, Any] = {dim: self.grid.coords[dim] for dim in self.grid.sizes}
        if time is not None:
            coords["time"] = time
        if "group" in dims:
            coords["group"] = labels_array(self.groups)
        return xr.DataArray(shaped.transpose(order), dims=(*names, *self.grid.sizes), coords=coords)


def parameters(problem: Mixture, sgd: SGD, more: Sequence[xr.DataArray] = ()) -> Parameters:
    """Flatten a problem and its SGD over their common grid; for schedules the value at t = 0 is used.

    `more` are further numbers over whose grid the arrays should run.
    """
    if not isinstance(problem, Mixture):
        raise TypeError(f"`problem` should be a Mixture, like `teacher_mixture()`. Found {type(problem).__name__}.")
    if not isinstance(sgd, SGD):
        raise TypeError(f"`sgd` should be an SGD(lr=...). Found {type(sgd).__name__}.")
    sgd = lowered(problem, sgd)
    if sgd.interventions:  # functions refuse by name before this; those that apply an intervention take it out
        names = ", ".join(type(law).__name__ for law in sgd.interventions)
        raise ValueError(f"There is no way to apply {names} here. Use `predict` or `simulate`.")
    groups = problem.groups
    lr = _at(sgd.lr, 0.0)
    weights = loss_weights(sgd, groups, 0.0)
    shares = shares_at(sgd.proportions, groups, 0.0)
    parts = [x for x in (lr, sgd.batch, sgd.weight_decay, *weights, *(shares or ())) if isinstance(x, xr.DataArray)]
    grid = common_grid(problem.grid(), [*parts, *more], "problem and SGD" if not more else "problem, training and data")

    def flat(array: Any, *lead: str) -> np.ndarray:
        return flat_over(array, grid, *lead)

    number = len(groups)
    gram = flat(problem.gram, "vector", "other")
    D, prior = flat(problem.variance, "group"), flat(problem.weight, "group")
    C = gram[:, :number, number:]
    a = (np.diagonal(C, axis1=1, axis2=2) + flat(problem.label_bias, "group")) / np.sqrt(D)
    flat_start = _start(sgd, groups, gram)
    return Parameters(
        groups=groups,
        grid=grid,
        prior=prior,
        p=prior if shares is None else np.stack([flat(share) for share in shares], axis=1),
        s=np.stack([flat(weight) for weight in weights], axis=1),
        D=D,
        a=a,
        m=erf(a / np.sqrt(2.0)),
        g=np.sqrt(2.0 / np.pi) * np.exp(-0.5 * a**2),
        K=np.ascontiguousarray(gram[:, :number, :number]),
        C=np.ascontiguousarray(C),
        T=np.ascontiguousarray(gram[:, number:, number:]),
        lr=flat(lr),
        batch=flat(sgd.batch),
        decay=flat(sgd.weight_decay),
        train_bias=sgd.train_bias,
        **flat_start,
    )


def loss_weights(sgd: SGD, groups: tuple[Hashable, ...], t: float) -> list[Any]:
    """The weight of each group's loss at time t; the default weight is 1."""
    given = sgd.weights or {}
    for key in given:
        if key not in groups:
            if isinstance(key, tuple) and len(key) == 2 and key[0] in groups:
                raise ValueError(
                    f"`weights` per (group, label), such as {key!r}, have no closed form here: use `simulate`."
                )
            raise KeyError(f"`weights` names the unknown group {key!r}. There are: {_listed(groups)}.")
    return [_at(given.get(group, 1.0), t) for group in groups]


def shares_at(proportions: Mapping[Hashable, Any] | None, groups: tuple[Hashable, ...], t: float) -> list[Any] | None:
    """How often each group is drawn at time t; None: as in the data."""
    if proportions is None:
        return None
    for key in proportions:
        if key not in groups:
            raise KeyError(f"`proportions` names the unknown group {key!r}. There are: {_listed(groups)}.")
    missing = [group for group in groups if group not in proportions]
    if missing:
        raise KeyError(f"`proportions` should name every group; {_listed(missing)} is missing.")
    shares = [_at(proportions[group], t) for group in groups]
    lowest = min(float(np.min(np.asarray(share))) for share in shares)
    if not lowest >= 0:
        raise ValueError(f"`proportions` should not be negative. Found {lowest:g} at t = {t:.4g}.")
    total = sum(shares)
    if float(np.max(np.abs(np.asarray(total) - 1.0))) > ROUNDING:
        when = f" at t = {t:.4g}" if any(map(_changes, proportions.values())) else ""
        raise ValueError(f"The proportions should sum to one. They sum to {float(np.asarray(total).flat[0]):g}{when}.")
    return shares


def _start(sgd: SGD, groups: tuple[Hashable, ...], gram: np.ndarray) -> dict[str, np.ndarray]:
    count, number = len(gram), len(groups)
    M0, R0, Q0, bias0 = np.zeros((count, number)), np.zeros((count, number)), np.zeros(count), np.zeros(count)
    match sgd.start:
        case Random(scale):
            Q0 = np.full(count, float(scale) ** 2)
        case Overlaps(M, R, Q, bias):
            if isinstance(Q, tuple) or any(isinstance(value, tuple) for value in (*M.values(), *R.values())):
                raise ValueError(
                    "`start` gives overlaps per unit, as for a Network(...). A linear student has one unit."
                )
            for key in (*M, *R):
                if key not in groups:
                    raise KeyError(f"`start` names the unknown group {key!r}. There are: {_listed(groups)}.")
            for i, group in enumerate(groups):
                M0[:, i], R0[:, i] = M.get(group, 0.0), R.get(group, 0.0)
            Q0, bias0 = np.full(count, float(Q)), np.full(count, float(bias))
            _check_overlaps(np.concatenate([M0, R0], axis=1), Q0, gram)
    return {"M0": M0, "R0": R0, "Q0": Q0, "bias0": bias0}


def _check_overlaps(overlaps: np.ndarray, Q0: np.ndarray, gram: np.ndarray) -> None:
    """Check that some vector has these overlaps, and that Q is at least the squared length of its part in their
    span.
    """
    inverse = np.linalg.pinv(gram, rcond=1e-9, hermitian=True)
    back = np.einsum("nij,njk,nk->ni", gram, inverse, overlaps)
    off = float(np.abs(back - overlaps).max())
    if off > 1e-7:
        raise ValueError(
            "No student has these starting overlaps: they contradict the geometry of the means and teachers "
            f"by {off:.3g}."
        )
    least = float(np.einsum("ni,nij,nj->n", overlaps, inverse, overlaps).max())
    if Q0.min() < least - 1e-9:
        raise ValueError(f"`Q` of the start should be at least {least:.6g} for these overlaps. Found Q = {Q0.min():g}.")


def _changes(value: Any) -> bool:
    return callable(value) and not isinstance(value, xr.DataArray)


def _at(value: Any, t: float) -> Any:
    return value(t) if _changes(value) else value


def _listed(groups: Any) -> str:
    return ", ".join(map(repr, groups))
