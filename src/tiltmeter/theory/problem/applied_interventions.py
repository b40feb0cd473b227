"""Interventions in an SGD: constant ones as plain settings, and who refuses the others."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.interventions.group_intervention import GroupIntervention, Seen, refuse_unreachable
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.sgd import SGD


def refuse_interventions(sgd: object, function: str, group_interventions: bool = False) -> None:
    """Raise for interventions that a function cannot apply, and name one that can; constant interventions pass.

    `group_interventions`: whether it applies interventions of groups that see losses.
    """
    # Other optimisers of the theory pass; a Recipe has a learning rate too, but no initial weights.
    if not hasattr(sgd, "lr") or not hasattr(sgd, "start"):
        raise TypeError(f"`sgd` should be an SGD(lr=...). Found {type(sgd).__name__}.")
    for law in sgd.interventions if isinstance(sgd, SGD) else ():
        if isinstance(law, GroupIntervention) and (law.constant or (group_interventions and not law.sees_gram)):
            continue
        raise ValueError(f"`{function}` {_reason(law, function)}")


def _reason(law: Intervention, function: str) -> str:
    name = type(law).__name__
    if not isinstance(law, GroupIntervention):
        return f"cannot apply {name}, which changes {law.changes}. Use `{law.applied_by}`."
    if law.sees_gram:
        more = "" if function != "predict" else "; for batches 1 << batch << d there is `tm.theory.gram_limit`"
        return f"has no exact solution with {name}, which sees the gradients of a batch. Use `simulate`{more}."
    return f"has no solution with {name}, which changes what groups count during training. Use `predict`."


def lowered(problem: Mixture, sgd: SGD) -> SGD:
    """The same SGD with its constant intervention written as weights (P / p) or proportions (P): the shares are known
    here.

    >>> from tiltmeter.interventions import Balanced
    >>> from tiltmeter.theory.problem.teacher_mixture import teacher_mixture
    >>> lowered(teacher_mixture(rho=0.75), SGD(lr=0.1, interventions=(Balanced(by="draws"),))).proportions
    {'+': 0.5, '-': 0.5}
    """
    law = sgd.law
    if law is None or not law.constant or not isinstance(problem, Mixture):
        return sgd
    shares = drawn(problem, sgd)
    stacked = np.stack(np.broadcast_arrays(*(share.values for share in shares.values())), axis=-1)
    seen = Seen(0.0, problem.groups, stacked, np.full_like(stacked, np.nan))
    refuse_unreachable(law, problem.groups, stacked)
    pulls = law.pull(law.start(stacked), seen)
    grid = xr.broadcast(*shares.values())[0]
    parts = {g: grid.copy(data=pulls[..., i].reshape(grid.shape)) for i, g in enumerate(problem.groups)}
    rest = tuple(one for one in sgd.interventions if one is not law)
    if law.by == "draws":
        return replace(sgd, proportions={g: _plain(P) for g, P in parts.items()}, interventions=rest)
    given = dict(sgd.weights or {})
    factors = {g: _plain(P / shares[g]) for g, P in parts.items()}
    for key, value in given.items():
        if key in factors:
            factors[key] = _scaled(value, factors[key])
        else:
            factors[key] = value  # of one (group, label): it multiplies with that of the group
    return replace(sgd, weights=factors, interventions=rest)


def drawn(problem: Mixture, sgd: SGD) -> dict[Hashable, xr.DataArray]:
    """How often every group is drawn."""
    if sgd.proportions is None:
        return {g: problem.weight.sel(group=g, drop=True) for g in problem.groups}
    for key in sgd.proportions:
        if key not in problem.groups:
            listed = ", ".join(map(repr, problem.groups))
            raise KeyError(f"`proportions` names the unknown group {key!r}. There are: {listed}.")
    missing = [group for group in problem.groups if group not in sgd.proportions]
    if missing:
        raise KeyError(f"`proportions` should name every group; {', '.join(map(repr, missing))} is missing.")
    shares = [xr.DataArray(sgd.proportions[g]) for g in problem.groups]
    return dict(zip(problem.groups, xr.broadcast(*shares), strict=True))


def _plain(array: Any) -> Any:
    return float(array) if array.ndim == 0 else array


class _Scaled:
    """A schedule times a number."""

    def __init__(self, schedule: Any, factor: Any) -> None:
        self.schedule, self.factor = schedule, factor
        self.breaks = tuple(getattr(schedule, "breaks", ()))

    def __call__(self, t: float) -> float:
        return float(self.schedule(t) * self.factor)


def _scaled(value: Any, factor: Any) -> Any:
    if not callable(value) or isinstance(value, xr.DataArray):
        return value * factor
    if isinstance(factor, xr.DataArray):
        raise ValueError("Scheduled weights beside an intervention of groups need one problem at a time. Found a grid.")
    return _Scaled(value, factor)
