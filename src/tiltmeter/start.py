"""Where the student starts: from zero, from random weights, or from given overlaps (a warm start)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tiltmeter.record.labelled import JSON, label_from_json, label_to_json


@dataclass(frozen=True)
class Zero:
    """All weights zero."""


@dataclass(frozen=True)
class Random:
    """Independent normal weights of standard deviation `scale`, unrelated to any mean or teacher: Q = scale^2."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        if not self.scale >= 0:
            raise ValueError(f"`scale` should not be negative. Found scale = {self.scale}.")


@dataclass(frozen=True)
class Overlaps:
    """Given overlaps with the means (`M`) and teachers (`R`) of each group, squared length `Q`, and `bias`.

    A warm start from another task's solution: read them off that task's trajectory. Groups left out have
    overlap zero.

    >>> Overlaps(M={"+": 0.1, "-": -0.1}, R={"+": 0.5, "-": 0.2}, Q=0.4).Q
    0.4
    """

    M: Mapping[Hashable, float] = field(default_factory=dict)
    R: Mapping[Hashable, float] = field(default_factory=dict)
    Q: float = 0.0
    bias: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "M", dict(self.M))
        object.__setattr__(self, "R", dict(self.R))
        if not self.Q >= 0:
            raise ValueError(f"`Q` is a squared length and should not be negative. Found Q = {self.Q}.")

    def __hash__(self) -> int:
        return hash((tuple(self.M.items()), tuple(self.R.items()), self.Q, self.bias))


Start: TypeAlias = Zero | Random | Overlaps


def start_to_json(start: Start) -> dict[str, JSON]:
    match start:
        case Zero():
            return {"start": "zero"}
        case Random(scale):
            return {"start": "random", "scale": float(scale)}
        case Overlaps(M, R, Q, bias):
            pairs: dict[str, JSON] = {
                name: [[label_to_json(group), float(value)] for group, value in values.items()]
                for name, values in (("M", M), ("R", R))
            }
            return {"start": "overlaps", **pairs, "Q": float(Q), "bias": float(bias)}
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
