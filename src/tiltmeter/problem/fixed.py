"""Fixed: a training set that is drawn once and used many times."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import xarray as xr

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
class Fixed:
    """n = samples * d examples; a share `flips` of each group has the wrong label in training, never in the test.

    >>> Fixed(samples=2.0, flips={"+": 0.1}).epochs(3)
    6.0

    Batches of `SGD` use the set in a new random order in every epoch, as data loaders do; with `replace` they are drawn
    from all of it at every step. One epoch with batch 1 lasts t = samples. Numbers may be labelled grids.
    """

    samples: Number
    flips: Mapping[Hashable, Number] | None = None
    replace: bool = False

    def __post_init__(self) -> None:
        put = object.__setattr__
        samples = labelled(self.samples, "samples")
        if not (samples.values > 0).all():
            raise ValueError(f"`samples` should be positive. Found samples = {samples.values.min():g}.")
        put(self, "samples", float(samples) if samples.ndim == 0 else samples)
        if not isinstance(self.replace, bool):
            raise TypeError(f"`replace` should be True or False. Found replace = {self.replace!r}.")
        if self.flips is None:
            return
        if not isinstance(self.flips, Mapping) or not self.flips:
            raise TypeError(f"`flips` should map groups to shares, as in {{'-': 0.1}}. Found {self.flips!r}.")
        put(self, "flips", {group: _share(value, f"flips[{group!r}]") for group, value in self.flips.items()})

    def __eq__(self, other: object) -> bool:
        return self.to_json() == other.to_json() if isinstance(other, Fixed) else NotImplemented

    def __hash__(self) -> int:
        if any(isinstance(number, xr.DataArray) for number in (self.samples, *(self.flips or {}).values())):
            raise TypeError("A Fixed over a grid of values is unhashable.")
        return hash(repr(self.to_json()))

    def epochs(self, count: float, batch: int = 1) -> Any:
        """The time t = steps/d after `count` epochs."""
        return count * self.samples / batch  # type: ignore[operator]

    def shares(self, groups: tuple[Hashable, ...]) -> list[Any]:
        """The share of wrong labels of each group; the default is none."""
        given = self.flips or {}
        for group in given:
            if group not in groups:
                known = ", ".join(map(repr, groups))
                raise KeyError(f"`flips` names the unknown group {group!r}. There are: {known}.")
        return [given.get(group, 0.0) for group in groups]

    def to_json(self) -> dict[str, JSON]:
        flips: JSON = None
        if self.flips is not None:
            flips = [[label_to_json(group), _to_json(value)] for group, value in self.flips.items()]
        return {"data": "fixed", "samples": _to_json(self.samples), "flips": flips, "replace": self.replace}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Fixed:
        """The value written by `to_json`."""
        flips = value["flips"]
        if flips is not None:
            flips = {label_from_json(group): _from_json(share) for group, share in flips}
        return cls(_from_json(value["samples"]), flips, value["replace"])


def _share(value: Any, name: str) -> float | xr.DataArray:
    array = labelled(value, name)
    if not ((array.values >= 0) & (array.values <= 1)).all():
        bad = array.values[(array.values < 0) | (array.values > 1)].flat[0]
        raise ValueError(f"`{name}` should lie between 0 and 1. Found {name} = {bad:g}.")
    return float(array) if array.ndim == 0 else array


def _to_json(value: Any) -> JSON:
    return array_to_json(value) if isinstance(value, xr.DataArray) else float(value)


def _from_json(value: Any) -> Any:
    return array_from_json(value) if isinstance(value, Mapping) else value
