"""ClassSettings: how C linear scores are trained on a ClassMixture, at any time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from tiltmeter.population.classes.moments import ClassMoments
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.sgd_arrays import loss_weights, shares_at
from tiltmeter.problem.start import Overlaps, Random


@dataclass(frozen=True)
class ClassSettings:
    """The SGD in numbers: decay, batch, trained bias and start; `at(t)` returns what may change with time."""

    data: ClassMoments
    sgd: SGD
    start: np.ndarray  # W, Q and bias, flat
    decay: float
    batch: float

    def at(self, t: float) -> tuple[float, np.ndarray, np.ndarray]:
        """Learning rate, shares drawn (G) and loss weights (G) at time t."""
        lr = self.sgd.lr
        now = float(lr(t)) if callable(lr) else float(lr)  # type: ignore[arg-type]
        shares = shares_at(self.sgd.proportions, self.data.groups, t)
        drawn = self.data.p if shares is None else np.array(shares, dtype=float)
        return now, drawn, np.array(loss_weights(self.sgd, self.data.groups, t), dtype=float)

    @property
    def sizes(self) -> tuple[int, int]:
        """C and r."""
        return len(self.data.classes), self.data.mu.shape[1]

    def split(self, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """W (..., C, r), Q (..., C, C) and bias (..., C) of flat states."""
        count, rank = self.sizes
        W, Q, bias = np.split(flat, [count * rank, count * (rank + count)], axis=-1)
        return W.reshape(*flat.shape[:-1], count, rank), Q.reshape(*flat.shape[:-1], count, count), bias


def class_settings(data: ClassMoments, sgd: SGD) -> ClassSettings:
    """Return the settings; refuse what the theory of several classes cannot treat, naming what can."""
    if not isinstance(sgd, SGD):
        raise TypeError(f"`sgd` should be an SGD(lr=...). Found {type(sgd).__name__}.")
    for name, value in (("lr", sgd.lr), ("batch", sgd.batch), ("weight_decay", sgd.weight_decay)):
        if isinstance(value, xr.DataArray) and value.ndim:
            raise ValueError(f"With several classes `{name}` should be one number, not a grid. Call once per point.")
    for name, given in (("momentum", sgd.momentum != 0.0), ("clip", sgd.clip is not None)):
        if given:
            raise ValueError(
                f"`predict` has no exact solution with {name}. Train a linear module on `samples` of the problem."
            )
    if sgd.interventions:
        names = ", ".join(type(law).__name__ for law in sgd.interventions)
        raise ValueError(f"With several classes `predict` cannot apply {names}. Use `weights` or `proportions`.")
    if isinstance(sgd.start, Overlaps):
        raise ValueError(
            "`Overlaps` starts one score; with several classes start from Zero() or Random(scale), or pre-train by "
            "a schedule of `proportions`."
        )
    for key in sgd.weights or {}:
        if isinstance(key, tuple) and len(key) == 2 and key[0] in data.groups and key[1] in data.classes:
            raise ValueError(f"`weights` per (group, class), such as {key!r}, are not solved here: use `simulate`.")
    count, rank = len(data.classes), data.mu.shape[1]
    scale = float(sgd.start.scale) if isinstance(sgd.start, Random) else 0.0
    start = np.concatenate([np.zeros(count * rank), (scale**2 * np.eye(count)).ravel(), np.zeros(count)])
    found = ClassSettings(data, sgd, start, float(sgd.weight_decay), float(sgd.batch))  # type: ignore[arg-type]
    found.at(0.0)
    return found
