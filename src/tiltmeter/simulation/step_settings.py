"""StepSettings: the learning rate and loss weights of every step, constant or from schedules."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.problem.sgd import SGD
from tiltmeter.schedule import value_at


@dataclass(frozen=True)
class StepSettings:
    """Arrays with one entry per step if something changes, else with a single entry."""

    sgd: SGD
    groups: tuple[Hashable, ...]
    d: int

    def __post_init__(self) -> None:
        for key, value in (self.sgd.weights or {}).items():
            _places(key, self.groups)
            _single(value, f"weights[{key!r}]")
        _single(self.sgd.lr, "lr")

    def rates(self, first: int, stop: int) -> np.ndarray:
        """lr / d at the steps first..stop."""
        lr = self.sgd.lr
        if not callable(lr):
            return np.array([float(lr) / self.d])  # type: ignore[arg-type]
        return np.array([value_at(lr, step / self.d, "lr") for step in range(first, stop)]) / self.d

    def weights(self, first: int, stop: int) -> np.ndarray:
        """Weights of shape (steps or 1, G, 2): what multiplies the loss of a group and label (-1, +1)."""
        given = self.sgd.weights or {}
        changing = any(callable(value) for value in given.values())
        steps = range(first, stop) if changing else range(1)
        table = np.ones((len(steps), len(self.groups), 2))
        for key, value in given.items():
            group, labels = _places(key, self.groups)
            for row, step in enumerate(steps):
                t = step / self.d
                now = value_at(value, t, f"weights[{key!r}]") if callable(value) else float(value)  # type: ignore[arg-type]
                table[row, group, labels] *= now
        return table

    def pulls(self, shares: np.ndarray) -> np.ndarray:
        """Return the pull of every group at the start, if no weight depends on the label."""
        return np.asarray(shares * self.weights(0, 1)[0].mean(1))


def _places(key: Hashable, groups: tuple[Hashable, ...]) -> tuple[int, slice]:
    """Return the place in the table of the weight of a group, or of a (group, label) pair."""
    if key in groups:
        return groups.index(key), slice(None)
    if isinstance(key, tuple) and len(key) == 2 and key[0] in groups:
        if key[1] not in (-1, 1):
            raise KeyError(f"`weights` names the label {key[1]!r} of group {key[0]!r}. Labels are -1 and 1.")
        place = 0 if key[1] == -1 else 1
        return groups.index(key[0]), slice(place, place + 1)
    raise KeyError(f"`weights` names the unknown group {key!r}. There are: {', '.join(map(repr, groups))}.")


def _single(value: Any, name: str) -> None:
    if isinstance(value, xr.DataArray) and value.ndim:
        raise ValueError(f"`{name}` should be one number here, not a grid over {', '.join(map(str, value.dims))}.")
