"""The part of `predict` that serves fixed training sets."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from tiltmeter.names import described
from tiltmeter.population.labelled_curves import chosen_names, label_curves
from tiltmeter.population.overlap_curves import OverlapCurves
from tiltmeter.problem.fixed import Fixed
from tiltmeter.problem.fixed_arrays import FixedParameters, fixed_parameters
from tiltmeter.problem.full_batch import Descent, Flow
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.times import checked_times
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Clock, Trajectory
from tiltmeter.theory.fixed_set.limits import fixed_limit, growth, replacement_limit, shuffled_limit
from tiltmeter.theory.fixed_set.overlaps import full_batch_overlaps
from tiltmeter.theory.fixed_set.stochastic import Replaced, Shuffled
from tiltmeter.theory.fixed_set.training_curves import training_curves

#: Curves that only training sets have.
FULL_BATCH = ("training_loss", "training_error")
STOCHASTIC = ("training_loss", "batch_noise")
#: Below this share of the limit with replacement nobody has seen shuffled epochs diverge.
SAFE = 0.9


def predict_fixed(
    problem: Mixture, training: SGD | Flow | Descent, times: np.ndarray, curves: Iterable[str] | None, data: Fixed
) -> Trajectory:
    """Exact curves on a fixed training set; `times` are steps for Descent."""
    refuse(training, data, curves)
    fixed = fixed_parameters(problem, training, data)
    if isinstance(training, SGD) and not data.replace and (fixed.par.batch != 1).any():
        raise ValueError(
            f"`predict` has no exact solution for shuffled epochs with batch = {int(fixed.par.batch.max())}, only for "
            "batch = 1. Use Fixed(..., replace=True), or `simulate` with method=Direct()."
        )
    more = STOCHASTIC if isinstance(training, SGD) else FULL_BATCH
    names = chosen_names(curves, fixed.par.train_bias, more)
    settings = {"sgd": training.to_json(), "data": data.to_json()}
    origin = Origin("theory", problem.to_json(), settings)
    gone = _divergence(fixed, training, data)
    clock: Clock = "step" if isinstance(training, Descent) else "t"
    if isinstance(training, Descent) and (times != np.round(times)).any():
        raise ValueError(f"`times` should be whole numbers of steps for Descent. Found {_fraction(times):g}.")
    ended = None if gone is None else np.where(gone, 0.0, np.nan)
    label = None if ended is None else fixed.par.label(ended)
    stable = fixed if gone is None else _tamed(fixed, gone)
    solved: list[Replaced | Shuffled] = []

    def evaluate(at: Any) -> Trajectory:
        at = checked_times(at)
        if isinstance(training, SGD):
            if not solved or solved[-1].last < at[-1]:
                solved[:] = [(Replaced if data.replace else Shuffled)(stable, max(float(at[-1]), 1e-6))]
            overlaps, extra = _stochastic(stable, solved[-1], at, names)
        else:
            overlaps, extra = _full_batch(stable, training, at, names)
        if gone is not None:
            overlaps.blank(gone)
        plain = tuple(name for name in names if name not in more)
        found = label_curves(fixed.par, overlaps, at, plain)
        for name, values in extra.items():
            if gone is not None:
                values[gone] = np.nan
            found[name] = described(name, fixed.par.label(values, "group", time=at))
        again: Callable[[Any], Trajectory] | None = None if clock == "step" else evaluate
        return Trajectory({name: found[name] for name in names}, clock, origin, label, again)

    return evaluate(times)


def refuse(training: SGD | Flow | Descent, data: Fixed, curves: Iterable[str] | None) -> None:
    """What has no exact solution on a fixed set, each with what has one."""
    if not isinstance(training, (SGD, Flow, Descent)):
        raise TypeError(f"`sgd` should be an SGD, Flow or Descent. Found {type(training).__name__}.")
    wanted = () if curves is None else ((curves,) if isinstance(curves, str) else tuple(curves))
    if not isinstance(training, SGD):
        if data.replace:
            raise ValueError(f"`replace` is about batches of SGD; {type(training).__name__} uses all examples at once.")
        if "batch_noise" in wanted:
            raise ValueError(f"`batch_noise` is about batches of SGD; {type(training).__name__} has none.")
        return
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
    fixed: FixedParameters, training: Flow | Descent, times: np.ndarray, names: tuple[str, ...]
) -> tuple[OverlapCurves, dict[str, np.ndarray]]:
    momentum = training.momentum if isinstance(training, Descent) else None
    extra = {}
    if not set(FULL_BATCH).isdisjoint(names):
        found = training_curves(fixed, times, momentum)
        extra = {name: values for name, values in zip(FULL_BATCH, found, strict=True) if name in names}
    return full_batch_overlaps(fixed, times, momentum), extra


def _stochastic(
    fixed: FixedParameters, solution: Replaced | Shuffled, times: np.ndarray, names: tuple[str, ...]
) -> tuple[OverlapCurves, dict[str, np.ndarray]]:
    found = solution.at(times, "training_loss" in names)
    extra = {}
    if "training_loss" in names:
        extra["training_loss"] = found.training_loss
    if "batch_noise" in names:
        extra["batch_noise"] = found.overlaps.loss - full_batch_overlaps(fixed, times).loss
    return found.overlaps, extra


def _divergence(fixed: FixedParameters, training: SGD | Flow | Descent, data: Fixed) -> np.ndarray | None:
    """Which grid points diverge, or None if none does; a single problem raises with its limit."""
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
    """The same with a harmless learning rate where training diverges, so that the equations can be solved."""
    lr = np.where(gone, 1e-3, fixed.par.lr)
    return replace(fixed, par=replace(fixed.par, lr=lr))


def _fraction(times: np.ndarray) -> float:
    return float(times[times != np.round(times)][0])
