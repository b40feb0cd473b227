"""Objective: what a fully trained student minimises, shared by theory and simulation."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.losses import Loss, checked_loss, loss_from_json, loss_to_json
from tiltmeter.record.labelled import (
    JSON,
    Number,
    array_from_json,
    array_to_json,
    common_grid,
    label_from_json,
    label_to_json,
    labelled,
    labels_array,
)
from tiltmeter.record.labelled import flat as flat_over
from tiltmeter.theory.problem.mixture import Mixture


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


#: The labels of a mixture, in the order of the label axis.
LABELS = (1, -1)


@dataclass(frozen=True)
class ProblemArrays:
    """One problem with one objective, in the symbols of the papers, over G groups and K students.

    p: share of a group; D: variance; a: label threshold; offset: constant that the teacher adds to its score; s (G, 2):
    weight of the loss for labels +1, -1; gram (2G, 2G): overlaps of all means, then all teachers; student: the student
    that a group trains and by which it is scored; precision (K, K): the quadratic form of ridge and coupling.
    """

    p: np.ndarray
    D: np.ndarray
    a: np.ndarray
    offset: np.ndarray
    s: np.ndarray
    gram: np.ndarray
    samples: float
    student: np.ndarray
    precision: np.ndarray
    bias: bool

    @property
    def groups(self) -> int:
        return len(self.p)

    @property
    def students(self) -> int:
        return len(self.precision)


@dataclass(frozen=True)
class Flattened:
    """All grid points of a problem with its objective, in C order of the dimensions of `grid`."""

    groups: tuple[Hashable, ...]
    grid: xr.Dataset
    points: tuple[ProblemArrays, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.grid.sizes.values())

    def where(self, index: int) -> str:
        """The grid point in words, for messages; empty without a grid."""
        if not self.shape:
            return ""
        labels = zip(self.grid.sizes, np.unravel_index(index, self.shape), strict=True)
        return " at " + ", ".join(f"{dim} = {self.grid.coords[dim].values[i]:.6g}" for dim, i in labels)

    def label(self, values: np.ndarray, *dims: str, **coords: Any) -> xr.DataArray:
        """Values of shape (N, ...) as a labelled array with dims (*dims, *grid)."""
        shaped = values.reshape(self.shape + values.shape[1:])
        ahead = len(self.shape)
        named: dict[Hashable, Any] = {dim: self.grid.coords[dim] for dim in self.grid.sizes}
        named.update(coords)
        if "group" in dims:
            named["group"] = labels_array(self.groups)
        order = (*range(ahead, shaped.ndim), *range(ahead))
        return xr.DataArray(shaped.transpose(order), dims=(*dims, *self.grid.sizes), coords=named)


def flatten(problem: Mixture, objective: Objective) -> Flattened:
    """Every grid point of the common grid of a problem and its objective."""
    if not isinstance(problem, Mixture):
        raise TypeError(f"`problem` should be a Mixture, like `teacher_mixture()`. Found {type(problem).__name__}.")
    grid = common_grid(problem.grid(), objective.numbers(), "problem and objective")
    return Flattened(problem.groups, grid, tuple(_points(problem, objective, grid)))


def _points(problem: Mixture, objective: Objective, grid: xr.Dataset) -> Iterator[ProblemArrays]:
    groups = problem.groups
    number = len(groups)
    count = prod(grid.sizes.values())

    def flat(array: Any, *lead: str) -> np.ndarray:
        return flat_over(array, grid, *lead)

    p, D, gram = flat(problem.weight, "group"), flat(problem.variance, "group"), flat(problem.gram, "vector", "other")
    offset = flat(problem.label_bias, "group")
    a = (np.diagonal(gram[:, :number, number:], axis1=1, axis2=2) + offset) / np.sqrt(D)
    s = np.stack([flat(w) for w in _weights(objective.weights, groups)], axis=1).reshape(count, number, 2)
    samples, ridge = flat(objective.samples), flat(objective.ridge)
    if objective.coupling is None:
        student, precision = np.zeros(number, dtype=int), ridge[:, None, None]
    else:
        student = np.arange(number)
        laplacian = number * np.eye(number) - 1.0
        precision = ridge[:, None, None] * np.eye(number) + flat(objective.coupling)[:, None, None] * laplacian
    if not (p[:, :, None] * s).sum((1, 2)).min() > 0:
        raise ValueError("`weights` should leave at least one group a positive weight. Found all zero.")
    for n in range(count):
        yield ProblemArrays(
            p[n], D[n], a[n], offset[n], s[n], gram[n], float(samples[n]), student, precision[n], objective.bias
        )


def _weights(given: Mapping[Hashable, Any] | None, groups: tuple[Hashable, ...]) -> list[Any]:
    """The weight of each (group, label), labels in the order of `LABELS`."""
    given = dict(given or {})
    chosen = []
    for group in groups:
        for label in LABELS:
            pairs = [key for key in given if _is_pair(key, group, label, groups)]
            if pairs and group in given:
                raise ValueError(f"`weights` names both {group!r} and {pairs[0]!r}: give one or the other.")
            chosen.append(given[pairs[0]] if pairs else given.get(group, 1.0))
    for key in given:
        if key not in groups and not any(_is_pair(key, g, label, groups) for g in groups for label in LABELS):
            listed = ", ".join(map(repr, groups))
            raise KeyError(
                f"`weights` names {key!r}; it should name a group ({listed}) or (group, label), label -1 or 1."
            )
    return chosen


def _is_pair(key: Hashable, group: Hashable, label: int, groups: tuple[Hashable, ...]) -> bool:
    return key not in groups and isinstance(key, tuple) and len(key) == 2 and key[0] == group and key[1] == label
