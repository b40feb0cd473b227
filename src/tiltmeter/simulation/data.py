"""Data: fresh samples at every step, or a finite data set used repeatedly."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import xarray as xr

from tiltmeter.problem.fixed import Fixed
from tiltmeter.record.labelled import JSON


@dataclass(frozen=True)
class Fresh:
    """Every sample is new: online learning, as in the theory. This is the default of `simulate`.

    >>> Fresh()
    Fresh()
    """

    def to_json(self) -> dict[str, JSON]:
        return {"data": "fresh"}


@dataclass(frozen=True)
class Repeated:
    """A data set of n = alpha d samples per seed, shuffled anew for every epoch, which the student can memorise.

    >>> Repeated(alpha=2.0).epochs(3, batch=4)
    1.5

    An epoch lasts alpha / batch in units of t. All samples of all seeds are kept in memory: alpha d^2 numbers per seed.
    `simulate` also accepts `Fixed(samples)`, the description of the same data in the theory.

    Args:
        alpha: Samples per dimension, n / d.
        flips: Share of wrong labels in each group; None: none.
        replace: Whether every batch is drawn from all samples, instead of in shuffled epochs.
    """

    alpha: float
    flips: Mapping[Hashable, float] | None = None
    replace: bool = False

    def __post_init__(self) -> None:
        if not self.alpha > 0:
            raise ValueError(f"`alpha` should be positive. Found alpha = {self.alpha}.")
        self.fixed()

    def fixed(self) -> Fixed:
        """The same data as the theory describes them."""
        return Fixed(self.alpha, self.flips, self.replace)

    def epochs(self, count: float, batch: int = 1) -> float:
        """The time t = steps/d after `count` epochs."""
        return count * self.alpha / batch

    def samples(self, d: int) -> int:
        """The size of the data set in dimension d."""
        return max(1, round(self.alpha * d))

    def to_json(self) -> dict[str, JSON]:
        return self.fixed().to_json()


Data: TypeAlias = Fresh | Repeated


def checked_data(data: object) -> Data:
    if isinstance(data, Fixed):
        for number in (data.samples, *(data.flips or {}).values()):
            if isinstance(number, xr.DataArray):
                over = ", ".join(map(str, number.dims))
                raise ValueError(f"`simulate` is for one data set; this one has a grid over {over}. Select one point.")
        return Repeated(float(data.samples), data.flips, data.replace)  # type: ignore[arg-type]
    if not isinstance(data, (Fresh, Repeated)):
        raise TypeError(f"`data` should be Fresh() or Repeated(alpha). Found {data!r}.")
    return data
