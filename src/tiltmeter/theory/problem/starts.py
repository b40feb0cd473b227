"""Start of the student: zero, random weights, or given overlaps (a warm start)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tiltmeter.record.labelled import JSON, label_from_json, label_to_json

__all__ = ["Overlaps", "Random", "Start", "Zero"]


#: One number for a linear student, one per unit for a network.
PerUnit: TypeAlias = float | tuple[float, ...]


@dataclass(frozen=True)
class Zero:
    """All weights zero.

    >>> import tiltmeter as tm
    >>> tm.predict(tm.teacher_mixture(), tm.SGD(lr=0.1, start=Zero()), [0.0])["Q"].item()
    0.0
    """


@dataclass(frozen=True)
class Random:
    """Independent normal weights with standard deviation `scale`, unrelated to any mean or teacher: Q = scale^2.

    >>> import tiltmeter as tm
    >>> tm.predict(tm.teacher_mixture(), tm.SGD(lr=0.1, start=Random(2.0)), [0.0])["Q"].item()
    4.0

    Args:
        scale: Standard deviation of the weights.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.scale <= 1e150:  # its square is an order parameter
            raise ValueError(f"`scale` should lie between 0 and 1e150. Found scale = {self.scale}.")


@dataclass(frozen=True)
class Overlaps:
    """Given overlaps with the means (`M`) and teachers (`R`) of each group, squared length `Q`, and `bias`.

    >>> Overlaps(M={"+": 0.1, "-": -0.1}, R={"+": 0.5, "-": 0.2}, Q=0.4).Q
    0.4

    Use it for a warm start from the solution of another task: take the overlaps from that task's trajectory. Groups
    that are left out have overlap zero. For a network M and R have one number per unit for each group, and Q is a
    matrix.

    Args:
        M: Overlap with the mean of each group; left out: zero.
        R: Overlap with the teacher of each group; left out: zero.
        Q: Squared length, or for a network the matrix of overlaps of its units.
        bias: Initial bias.
    """

    M: Mapping[Hashable, PerUnit] = field(default_factory=dict)
    R: Mapping[Hashable, PerUnit] = field(default_factory=dict)
    Q: float | tuple[tuple[float, ...], ...] = 0.0
    bias: float = 0.0

    def __post_init__(self) -> None:
        for name in ("M", "R"):
            given = {group: _frozen(value, f"{name}[{group!r}]", 1) for group, value in getattr(self, name).items()}
            object.__setattr__(self, name, given)
        object.__setattr__(self, "Q", _frozen(self.Q, "Q", 2))
        lengths = np.diagonal(np.atleast_2d(self.Q))
        if not (lengths >= 0).all():
            raise ValueError(f"`Q` is a squared length and should not be negative. Found Q = {lengths.min():g}.")

    def __hash__(self) -> int:
        return hash((tuple(self.M.items()), tuple(self.R.items()), self.Q, self.bias))


Start: TypeAlias = Zero | Random | Overlaps


def _frozen(value: Any, name: str, depth: int) -> Any:
    """A number unchanged; one number per unit, or per pair of units, as tuples."""
    array = np.asarray(value, dtype=float)
    if array.ndim not in (0, depth) or (depth == 2 and array.ndim == 2 and not np.array_equal(array, array.T)):
        kind = "a number, or for a network one per unit" if depth == 1 else "a number, or for a network symmetric"
        raise ValueError(f"`{name}` of the start should be {kind}. Found {name} = {value!r}.")
    return value if array.ndim == 0 else _tuples(array.tolist())


def _tuples(nested: Any) -> Any:
    return tuple(_tuples(part) for part in nested) if isinstance(nested, list) else nested


def _plain(value: Any) -> Any:
    return [_plain(part) for part in value] if isinstance(value, tuple) else float(value)


def start_to_json(start: Start) -> dict[str, JSON]:
    match start:
        case Zero():
            return {"start": "zero"}
        case Random(scale):
            return {"start": "random", "scale": float(scale)}
        case Overlaps(M, R, Q, bias):
            pairs: dict[str, JSON] = {
                name: [[label_to_json(group), _plain(value)] for group, value in values.items()]
                for name, values in (("M", M), ("R", R))
            }
            return {"start": "overlaps", **pairs, "Q": _plain(Q), "bias": float(bias)}
    raise TypeError(f"`start` should be Zero(), Random(scale) or Overlaps(...). Found {type(start).__name__}.")


def start_from_json(value: Mapping[str, Any]) -> Start:
    match value["start"]:
        case "zero":
            return Zero()
        case "random":
            return Random(value["scale"])
        case "overlaps":
            overlaps = {n: {label_from_json(group): number for group, number in value[n]} for n in ("M", "R")}
            return Overlaps(**overlaps, Q=value["Q"], bias=value["bias"])
    raise ValueError(f"Unknown start {value['start']!r}.")
