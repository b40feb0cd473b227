"""SGD: how the student is trained, shared by theory, simulation, training and forecast."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.arguments import checked_flag
from tiltmeter.interventions.checked import checked_interventions
from tiltmeter.interventions.group_intervention import GroupIntervention
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.stored import intervention_from_json
from tiltmeter.record.labelled import (
    JSON,
    Number,
    array_from_json,
    array_to_json,
    label_from_json,
    label_to_json,
    labelled,
)
from tiltmeter.schedules import Schedule, breaks_of, schedule_from_json, schedule_to_json
from tiltmeter.theory.problem.starts import Overlaps, Random, Start, Zero, start_from_json, start_to_json


@dataclass(frozen=True, eq=False)
class SGD:
    """Online stochastic gradient descent on the half squared error, one fresh batch per step.

    >>> SGD(lr=0.1).to_torch(d=100)
    {'lr': 0.001, 'momentum': 0.0, 'nesterov': False, 'weight_decay': 0.0}

    `lr` is the learning rate of the theory: W <- W - (lr / sqrt(d)) (score - y) x, with t = steps / d. Weights and
    proportions may change in time: a curriculum, or groups one after the other (`schedules.in_turn`), is a value like
    any other. The pulls of a `GroupIntervention` multiply with weights and proportions where both are given.

    Args:
        lr: Learning rate of the theory: a number, a schedule of `tm.schedules` or a labelled grid.
        batch: Fresh examples in one step.
        momentum: Heavy-ball momentum; `simulate` only.
        nesterov: Whether the momentum is Nesterov's.
        weight_decay: Shrinks the weights by lr * weight_decay / d in every step.
        clip: Largest norm of the gradient; None: no limit. `simulate` only.
        weights: Factor on the loss of each group, or of each (group, label); may hold schedules. None: all 1.
        proportions: How often each group is drawn; may hold schedules. None: as in the data.
        train_bias: Whether a bias is trained beside the weights.
        start: Student before training, one of `tm.theory.starts`.
        interventions: Ways to change the bias, of `tm.interventions`; at most one of groups.
    """

    lr: Number | Schedule
    batch: Number = 1
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: Number = 0.0
    clip: float | None = None
    weights: Mapping[Hashable, Number | Schedule] | None = None
    proportions: Mapping[Hashable, Number | Schedule] | None = None
    train_bias: bool = False
    start: Start = Zero()
    interventions: tuple[Intervention, ...] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        if not _is_schedule(self.lr):
            put(self, "lr", _plain(_at_least(self.lr, "lr", 0.0, strict=True)))
        batch = _at_least(self.batch, "batch", 1.0)
        if (batch.values != np.round(batch.values)).any():
            raise ValueError(f"`batch` should be a whole number. Found batch = {self.batch}.")
        put(self, "batch", int(batch) if batch.ndim == 0 else batch)
        put(self, "weight_decay", _plain(_at_least(self.weight_decay, "weight_decay", 0.0)))
        for name in ("momentum", "clip"):
            value = getattr(self, name)
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number, type(None))):
                raise TypeError(f"`{name}` should be a number. Found {name} = {value!r}.")
        if self.momentum is None or not 0.0 <= self.momentum < 1.0:
            raise ValueError(f"`momentum` should lie in [0, 1). Found momentum = {self.momentum}.")
        for name in ("nesterov", "train_bias"):
            checked_flag(name, getattr(self, name))
        if self.nesterov and self.momentum == 0.0:
            raise ValueError("`nesterov` needs a momentum. Found momentum = 0.")
        if self.clip is not None and not 0 < self.clip < np.inf:
            raise ValueError(f"`clip` should be positive, or None for no clipping. Found clip = {self.clip}.")
        if self.weights is not None:
            put(self, "weights", _per_group(self.weights, "weights"))
        if self.proportions is not None:
            put(self, "proportions", _per_group(self.proportions, "proportions"))
        if not isinstance(self.start, (Zero, Random, Overlaps)):
            raise TypeError(
                f"`start` should be Zero(), Random(scale) or Overlaps(...). Found {type(self.start).__name__}."
            )
        put(self, "interventions", checked_interventions(self.interventions))
        if self.curriculum and self.law is not None:
            raise ValueError(
                "An intervention of groups and proportions that change both decide who is drawn: give one of them."
            )

    @property
    def scheduled(self) -> bool:
        """Whether anything changes during training, so that no closed form exists."""
        return any(_is_schedule(value) for value in (self.lr, *(self.weights or {}).values())) or self.curriculum

    @property
    def curriculum(self) -> bool:
        """Whether the groups are drawn in changing proportions."""
        return any(_is_schedule(share) for share in (self.proportions or {}).values())

    @property
    def law(self) -> GroupIntervention | None:
        """The intervention of groups among the interventions, if there is one."""
        return next((law for law in self.interventions if isinstance(law, GroupIntervention)), None)

    @property
    def steered(self) -> bool:
        """Whether an intervention acts during training; one that is constant is as good as a setting."""
        return any(not (isinstance(law, GroupIntervention) and law.constant) for law in self.interventions)

    @property
    def breaks(self) -> tuple[float, ...]:
        """Times at which a schedule, or one inside an intervention, is not smooth."""
        changing = (self.lr, *(self.weights or {}).values(), *(self.proportions or {}).values(), *self.interventions)
        found = {b for schedule in changing for b in breaks_of(schedule)}
        return tuple(sorted(found))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SGD):
            return NotImplemented
        return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    def __hash__(self) -> int:
        plain = self.to_json()
        if isinstance(self.lr, xr.DataArray) or any(isinstance(v, dict) and "dims" in v for v in plain.values()):
            raise TypeError("An SGD over a grid of values is unhashable.")
        return hash(repr(plain))

    def to_torch(self, d: int) -> dict[str, float | bool]:
        """Arguments of `torch.optim.SGD` for a module w.x (+ b) with half squared error in dimension d.

        With inputs x and score w.x, w = W/sqrt(d), the same run has lr_torch = lr/d; `nn.MSELoss`, which has no
        half, needs half of that.
        """
        if _is_schedule(self.lr) or isinstance(self.lr, xr.DataArray):
            raise ValueError("`to_torch` needs one constant learning rate.")
        if self.interventions:
            names = ", ".join(type(law).__name__ for law in self.interventions)
            raise ValueError(f"torch.optim.SGD has no place for {names}: only `tiltmeter` applies it.")
        if self.weight_decay and self.train_bias:
            raise ValueError("torch.optim.SGD would decay the bias too: put it in a parameter group of its own.")
        return {
            "lr": self.lr / d,  # type: ignore[operator]
            "momentum": self.momentum,
            "nesterov": self.nesterov,
            "weight_decay": self.weight_decay,  # type: ignore[dict-item]
        }

    def to_json(self) -> dict[str, JSON]:
        return {
            "lr": _number_to_json(self.lr),
            "batch": _number_to_json(self.batch),
            "momentum": self.momentum,
            "nesterov": self.nesterov,
            "weight_decay": _number_to_json(self.weight_decay),
            "clip": self.clip,
            "weights": _groups_to_json(self.weights),
            "proportions": _groups_to_json(self.proportions),
            "train_bias": self.train_bias,
            "start": start_to_json(self.start),
            "interventions": [law.to_json() for law in self.interventions],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> SGD:
        given = dict(value)
        for name in ("lr", "batch", "weight_decay"):
            given[name] = _number_from_json(given[name])
        for name in ("weights", "proportions"):
            if given[name] is not None:
                given[name] = {label_from_json(group): _number_from_json(number) for group, number in given[name]}
        given["start"] = start_from_json(given["start"])
        given["interventions"] = tuple(intervention_from_json(law) for law in given.get("interventions", ()))
        return cls(**given)


def _is_schedule(value: object) -> bool:
    return callable(value) and not isinstance(value, xr.DataArray)


def _at_least(value: Any, name: str, bound: float, strict: bool = False) -> xr.DataArray:
    array = labelled(value, name)
    low = array.values.min()
    if not np.isfinite(array.values).all():
        raise ValueError(f"`{name}` should be finite. Found {name} = {value}.")
    if low < bound or (strict and low == bound):
        word = "positive" if strict else f"at least {bound:g}"
        raise ValueError(f"`{name}` should be {word}. Found {name} = {low:g}.")
    return array


def _plain(array: xr.DataArray) -> float | xr.DataArray:
    return float(array) if array.ndim == 0 else array


def _per_group(given: Mapping[Hashable, Any], name: str) -> dict[Hashable, Any]:
    if not isinstance(given, Mapping) or not given:
        raise TypeError(f"`{name}` should map groups to numbers, as in {{'+': 1.0, '-': 2.0}}. Found {given!r}.")
    return {
        group: value if _is_schedule(value) else _plain(_at_least(value, f"{name}[{group!r}]", 0.0))
        for group, value in given.items()
    }


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, xr.DataArray) or isinstance(b, xr.DataArray):
        return isinstance(a, xr.DataArray) and isinstance(b, xr.DataArray) and bool(a.equals(b))
    return bool(a == b)


def _number_to_json(value: Any) -> JSON:
    if _is_schedule(value):
        return schedule_to_json(value)
    return array_to_json(value) if isinstance(value, xr.DataArray) else value


def _number_from_json(value: Any) -> float | xr.DataArray | Callable[[float], float]:
    if isinstance(value, Mapping):
        return schedule_from_json(value) if "schedule" in value else array_from_json(value)
    if not math.isfinite(value):
        raise ValueError(f"A stored number should be finite. Found {value}.")
    return float(value)


def _groups_to_json(values: Mapping[Hashable, Any] | None) -> JSON:
    if values is None:
        return None
    return [[label_to_json(group), _number_to_json(value)] for group, value in values.items()]
