"""FixedTheory: the exact curves of training on a fixed set as a function of time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.names import described
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import LazyCurves, Trajectory
from tiltmeter.theory.dynamics.fixed_set.limits import fixed_limit, growth, replacement_limit, shuffled_limit
from tiltmeter.theory.dynamics.fixed_set.overlaps import full_batch_overlaps
from tiltmeter.theory.dynamics.fixed_set.stochastic import Replaced, Shuffled
from tiltmeter.theory.dynamics.fixed_set.training_curves import training_curves
from tiltmeter.theory.population.labelled_curves import OverlapCurves, chosen_names, label_curves
from tiltmeter.theory.problem.fixed import Fixed, FixedParameters, fixed_parameters
from tiltmeter.theory.problem.full_batch import Descent, Flow
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.times import checked_times

#: Curves that exist only for fixed training sets.
FULL_BATCH = ("training_loss", "training_error")
STOCHASTIC = ("training_loss", "batch_noise")
#: Below this share of the limit with replacement, shuffled epochs have always been found stable.
SAFE = 0.9


@dataclass(frozen=True, eq=False)
class FixedTheory:
    """A problem, its training and its data, solved; a call with times returns the curves there.

    It is the `evaluate` of a trajectory. Test curves share one set of overlaps. The curves of the training set are the
    most expensive and are computed only when needed. The equations of SGD are solved once, up to the last time.
    """

    training: SGD | Flow | Descent
    data: Fixed
    names: tuple[str, ...]
    _fixed: FixedParameters
    _gone: np.ndarray | None
    _origin: Origin
    _solved: list[Replaced | Shuffled]

    def __call__(self, times: Any, curves: Iterable[str] | None = None) -> Trajectory:
        """Return the curves (default: those chosen at first) at these times; steps for Descent."""
        at = checked_times(times)
        names = self.names if curves is None else self._checked(curves)
        descends = isinstance(self.training, Descent)
        if descends and (at != np.round(at)).any():
            first = float(at[at != np.round(at)][0])
            raise ValueError(f"`times` should be whole numbers of steps for Descent. Found {first:g}.")
        fixed, gone = self._fixed, self._gone
        extra: Mapping[str, Callable[[], np.ndarray]]
        if isinstance(self.training, SGD):
            overlaps, extra = _stochastic(fixed, self._solution(float(at[-1])), at)
        else:
            overlaps, extra = _full_batch(fixed, self.training, at)
        if gone is not None:
            overlaps.blank(gone)

        def labelled(name: str) -> xr.DataArray:
            values = extra[name]()
            if gone is not None:
                values[gone] = np.nan
            return described(name, fixed.par.label(values, "group", time=at))

        plain = label_curves(fixed.par, overlaps, at, tuple(name for name in names if name not in extra))
        found = LazyCurves({n: partial(labelled if n in extra else plain.__getitem__, n) for n in names})
        ended = None if gone is None else fixed.par.label(np.where(gone, 0.0, np.nan))
        return Trajectory(found, "step" if descends else "t", self._origin, ended, None if descends else self)

    def _checked(self, curves: Iterable[str]) -> tuple[str, ...]:
        curves = (curves,) if isinstance(curves, str) else tuple(curves)
        refuse(self.training, self.data, curves)
        return _names(self.training, curves, self._fixed.par.train_bias)

    def _solution(self, last: float) -> Replaced | Shuffled:
        if not self._solved or self._solved[-1].last < last:
            self._solved[:] = [(Replaced if self.data.replace else Shuffled)(self._fixed, max(last, 1e-6))]
        return self._solved[-1]


def fixed_theory(
    problem: Mixture, training: SGD | Flow | Descent, data: Fixed, curves: Iterable[str] | None = None
) -> FixedTheory:
    """Check the arguments, refuse what has no exact solution or diverges, and prepare the solution."""
    wanted = None if curves is None else ((curves,) if isinstance(curves, str) else tuple(curves))
    refuse(training, data, wanted)
    fixed = fixed_parameters(problem, training, data)
    if isinstance(training, SGD) and not data.replace and (fixed.par.batch != 1).any():
        raise ValueError(
            f"`predict` has no exact solution for shuffled epochs with batch = {int(fixed.par.batch.max())}, only for "
            "batch = 1. Use Fixed(..., replace=True), or `simulate` with method=Direct()."
        )
    names = _names(training, wanted, fixed.par.train_bias)
    gone = _divergence(fixed, training, data)
    origin = Origin("theory", problem.to_json(), {"sgd": training.to_json(), "data": data.to_json()})
    return FixedTheory(training, data, names, fixed if gone is None else _tamed(fixed, gone), gone, origin, [])


def _names(training: SGD | Flow | Descent, curves: Iterable[str] | None, bias: bool) -> tuple[str, ...]:
    return chosen_names(curves, bias, STOCHASTIC if isinstance(training, SGD) else FULL_BATCH)


def refuse(training: SGD | Flow | Descent, data: Fixed, curves: Iterable[str] | None) -> None:
    """Refuse what has no exact solution on a fixed set, naming what treats it."""
    if not isinstance(training, (SGD, Flow, Descent)):
        raise TypeError(f"`sgd` should be an SGD, Flow or Descent. Found {type(training).__name__}.")
    wanted = () if curves is None else ((curves,) if isinstance(curves, str) else tuple(curves))
    if not isinstance(training, SGD):
        if data.replace:
            raise ValueError(f"`replace` is about batches of SGD; {type(training).__name__} uses all examples at once.")
        if "batch_noise" in wanted:
            raise ValueError(f"`batch_noise` is about batches of SGD; {type(training).__name__} has none.")
        return
    if training.curriculum:
        raise ValueError(
            "A fixed set keeps the proportions it was drawn with. Schedules of `proportions` are for fresh examples: "
            "leave out `data`, or give a schedule of `weights` to `simulate` with method=Direct()."
        )
    reasons = {
        "a schedule": training.scheduled,
        "clip": training.clip is not None,
        "a trained bias": training.train_bias,
        "nesterov": training.nesterov,
    }
    for what, given in reasons.items():
        if given:
            raise ValueError(
                f"`predict` has no exact solution for SGD with {what} on a fixed set. Use `simulate` with "
                "method=Direct()."
            )
    if training.momentum:
        raise ValueError(
            "`predict` has no exact solution for SGD with momentum on a fixed set. Use Descent(lr, momentum) for full "
            "batches, or `simulate` with method=Direct()."
        )
    if "training_error" in wanted:
        raise ValueError(
            "`predict` has no exact `training_error` for SGD, only the `training_loss`. Use Flow, or `simulate` with "
            "method=Direct()."
        )


def _full_batch(
    fixed: FixedParameters, training: Flow | Descent, times: np.ndarray
) -> tuple[OverlapCurves, Mapping[str, Callable[[], np.ndarray]]]:
    momentum = training.momentum if isinstance(training, Descent) else None

    @cache
    def trained() -> tuple[np.ndarray, np.ndarray]:
        return training_curves(fixed, times, momentum)

    extra = {"training_loss": lambda: trained()[0], "training_error": lambda: trained()[1]}
    return full_batch_overlaps(fixed, times, momentum), extra


def _stochastic(
    fixed: FixedParameters, solution: Replaced | Shuffled, times: np.ndarray
) -> tuple[OverlapCurves, Mapping[str, Callable[[], np.ndarray]]]:
    found = solution.overlaps(times)

    def noise() -> np.ndarray:
        return np.asarray(found.loss - full_batch_overlaps(fixed, times).loss)

    return found, {"training_loss": lambda: solution.training_loss(times), "batch_noise": noise}


def _divergence(fixed: FixedParameters, training: SGD | Flow | Descent, data: Fixed) -> np.ndarray | None:
    """Return which grid points diverge, or None; a single problem raises an error with its limit."""
    lr = fixed.par.lr
    if isinstance(training, SGD):
        drawn = np.array([replacement_limit(fixed, n) for n in range(fixed.size)])
        gone = lr >= drawn
        if not data.replace:
            gone = np.array([lr[n] >= SAFE * drawn[n] and growth(fixed, n, lr[n]) >= 0.0 for n in range(fixed.size)])
        limits = {n: drawn[n] if data.replace else shuffled_limit(fixed, n, drawn[n]) for n in np.flatnonzero(gone)[:1]}
    else:
        limit = fixed_limit(fixed, training, data)
        gone = lr >= limit
        limits = {n: limit[n] for n in np.flatnonzero(gone)[:1]}
    if not gone.any():
        return None
    first, limit_there = next(iter(limits.items()))
    if not fixed.par.grid.sizes:
        raise ValueError(
            f"`lr` should lie below the stability limit {limit_there:.6g} of this problem and training set. Found "
            f"lr = {lr[first]:g}: training diverges."
        )
    warnings.warn(
        f"{int(gone.sum())} of {fixed.size} grid points have `lr` at or above their stability limit (for example "
        f"lr = {lr[first]:g} against {limit_there:.4g}): training diverges there, and the curves are NaN.",
        stacklevel=4,
    )
    return gone


def _tamed(fixed: FixedParameters, gone: np.ndarray) -> FixedParameters:
    """Return the same with a small learning rate where training diverges, so that the equations can be solved."""
    lr = np.where(gone, 1e-3, fixed.par.lr)
    return replace(fixed, par=replace(fixed.par, lr=lr))
