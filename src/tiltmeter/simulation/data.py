"""Data: fresh samples at every step, or a finite data set gone through again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tiltmeter.record.labelled import JSON


@dataclass(frozen=True)
class Fresh:
    """Every sample is new: the online learning of the theory."""

    def to_json(self) -> dict[str, JSON]:
        return {"data": "fresh"}


@dataclass(frozen=True)
class Repeated:
    """A data set of n = alpha d samples per seed, shuffled anew for every epoch: does the student memorise it?

    An epoch lasts alpha / batch in units of t. All samples of all seeds are kept: alpha d^2 numbers per seed.

    >>> Repeated(alpha=2.0).epochs(3, batch=4)
    1.5
    """

    alpha: float

    def __post_init__(self) -> None:
        if not self.alpha > 0:
            raise ValueError(f"`alpha` should be positive. Found alpha = {self.alpha}.")

    def epochs(self, count: float, batch: int = 1) -> float:
        """The time t = steps/d after `count` epochs."""
        return count * self.alpha / batch

    def samples(self, d: int) -> int:
        """The size of the data set in dimension d."""
        return max(1, round(self.alpha * d))

    def to_json(self) -> dict[str, JSON]:
        return {"data": "repeated", "alpha": float(self.alpha)}


Data: TypeAlias = Fresh | Repeated


def checked_data(data: object) -> Data:
    if not isinstance(data, (Fresh, Repeated)):
        raise TypeError(f"`data` should be Fresh() or Repeated(alpha). Found {data!r}.")
    return data
