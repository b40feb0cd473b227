"""Objective: what a fully trained student minimises, shared by theory and simulation."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import xarray as xr

from tiltmeter.losses import Loss, checked_loss, loss_from_json, loss_to_json
from tiltmeter.record.labelled import (
    JSON,
    Number,
    array_from_json,
    array_to_json,
    label_from_json,
    label_to_json,
    labelled,
)


@dataclass(frozen=True, eq=False)
class Objective:
    """The sum over n = samples * d examples of weight * loss, plus (ridge / 2) |W|^2, with scores W.x / sqrt(d) + bias.

    scikit-learn's C on the inputs x / sqrt(d) is 1 / ridge. `weights` multiply the losses of a group, or of one label
    -1 or +1 in it with the key (group, label); the default weight is 1. With `coupling` every group has its own
    student, and each pair of students adds (coupling / 2) |W_a - W_b|^2. Numbers may be labelled grids.
    """

    loss: Loss
    samples: Number
    ridge: Number
    weights: Mapping[Hashable, Number] | None = None
    bias: bool = True
    coupling: Number | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        checked_loss(self.loss)
        samples = labelled(self.samples, "samples")
        if not (samples.values > 0).all():
            raise ValueError(f"`samples` should be positive. Found samples = {samples.values.min():g}.")
        put(self, "samples", samples)
        put(self, "ridge", _not_negative(self.ridge, "ridge"))
        if self.weights is not None:
            if not isinstance(self.weights, Mapping) or not self.weights:
                raise TypeError(
                    "`weights` should map groups, or (group, label), to numbers, as in {'+': 1.0, '-': 2.0}. "
                    f"Found {self.weights!r}."
                )
            put(self, "weights", {key: _not_negative(w, f"weights[{key!r}]") for key, w in self.weights.items()})
        if self.coupling is not None:
            put(self, "coupling", _not_negative(self.coupling, "coupling"))
            if not (labelled(self.ridge, "ridge").values > 0).all():
                raise ValueError("Coupled students need a positive ridge. Found ridge = 0.")

    def numbers(self) -> list[xr.DataArray]:
        """Every number of the objective that may vary over a grid."""
        parts: list[Any] = [self.samples, self.ridge, *(self.weights or {}).values()]
        if self.coupling is not None:
            parts.append(self.coupling)
        return parts

    def to_json(self) -> dict[str, JSON]:
        weights: JSON = None
        if self.weights is not None:
            weights = [[label_to_json(key), _to_json(number)] for key, number in self.weights.items()]
        return {
            "loss": loss_to_json(self.loss),
            "samples": _to_json(self.samples),
            "ridge": _to_json(self.ridge),
            "weights": weights,
            "bias": self.bias,
            "coupling": None if self.coupling is None else _to_json(self.coupling),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Objective:
        """The objective written by `to_json`."""
        weights = value["weights"]
        return cls(
            loss=loss_from_json(value["loss"]),
            samples=_from_json(value["samples"]),
            ridge=_from_json(value["ridge"]),
            weights=None if weights is None else {label_from_json(key): _from_json(w) for key, w in weights},
            bias=value["bias"],
            coupling=None if value["coupling"] is None else _from_json(value["coupling"]),
        )


def _not_negative(value: Number, name: str) -> xr.DataArray:
    array = labelled(value, name)
    if not (array.values >= 0).all():
        raise ValueError(f"`{name}` should not be negative. Found {name} = {array.values.min():g}.")
    return array


def _to_json(number: Any) -> JSON:
    return float(number) if number.ndim == 0 else array_to_json(number)


def _from_json(value: Any) -> Number:
    return array_from_json(value) if isinstance(value, Mapping) else float(value)
