"""Criteria: what one may mean by unfair, each a number to make small, of trained students or of a whole training.

>>> import tiltmeter as tm
>>> theory = tm.predict(*tm.cases.three_phases())
>>> bool(WorstGroupLoss().of(theory) > FinalGap().of(theory))
True
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import xarray as xr

#: Curves by name: a Trajectory, or the Dataset of `equilibrium`, which has no times.
Curves: TypeAlias = Mapping[Any, xr.DataArray]


class Criterion(ABC):
    """An unfairness: lower is better. A new one is a small frozen class.

    `of` takes curves by name, as a Dataset from `equilibrium` or as a Trajectory, of which it judges the last time
    unless it says otherwise. Over several pairs of groups the worst counts.
    """

    #: Whether it can also be made small by harming the group that is better off.
    levels: ClassVar[bool] = True

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is, for a sentence."""

    @abstractmethod
    def of(self, found: Curves) -> xr.DataArray:
        """Its value, over whatever grid the curves have."""


def at_end(curve: xr.DataArray) -> xr.DataArray:
    """The curve at its last time, or as it is where it has none."""
    return curve.isel(time=-1) if "time" in curve.dims else curve


def over_training(curve: xr.DataArray) -> xr.DataArray:
    """The curve averaged over its times, straight between looks.

    >>> over_training(xr.DataArray([2.0, 0.0, 0.0], dims="time", coords={"time": [0, 1, 4]})).item()
    0.25
    """
    if "time" not in curve.dims:
        raise ValueError("An average over training needs curves over time. Found none: equilibrium has no times.")
    values, times = curve.transpose("time", ...), curve.coords["time"].values
    length = float(times[-1] - times[0]) or 1.0
    return values.isel(time=0, drop=True).copy(data=np.trapezoid(values.values, times, axis=0) / length)


def _worst(gap: xr.DataArray) -> xr.DataArray:
    return xr.DataArray(np.abs(at_end(gap))).max("pair", skipna=False)


def _spread(curve: xr.DataArray) -> xr.DataArray:
    return curve.max("group", skipna=False) - curve.min("group", skipna=False)


@dataclass(frozen=True)
class StatisticalParity(Criterion):
    """Groups are decided positive equally often.

    >>> gap = xr.DataArray([-0.25], dims="pair")
    >>> StatisticalParity().of(xr.Dataset({"positive_rate_gap": gap})).item()
    0.25
    """

    @property
    def name(self) -> str:
        return "statistical parity"

    def of(self, found: Curves) -> xr.DataArray:
        return _worst(found["positive_rate_gap"])


@dataclass(frozen=True)
class EqualOpportunity(Criterion):
    """Positives of all groups are recognised equally often."""

    @property
    def name(self) -> str:
        return "equal opportunity"

    def of(self, found: Curves) -> xr.DataArray:
        return _worst(found["tpr_gap"])


@dataclass(frozen=True)
class EqualisedOdds(Criterion):
    """Positives, and negatives, of all groups are decided positive equally often."""

    @property
    def name(self) -> str:
        return "equalised odds"

    def of(self, found: Curves) -> xr.DataArray:
        return _worst(found["equalised_odds"])


@dataclass(frozen=True)
class AccuracyParity(Criterion):
    """Decisions are wrong equally often in all groups."""

    @property
    def name(self) -> str:
        return "accuracy parity"

    def of(self, found: Curves) -> xr.DataArray:
        return _worst(found["error_gap"])


@dataclass(frozen=True)
class PredictiveParity(Criterion):
    """A positive decision is right equally often in all groups."""

    @property
    def name(self) -> str:
        return "predictive parity"

    def of(self, found: Curves) -> xr.DataArray:
        return _worst(found["ppv_gap"])


@dataclass(frozen=True)
class WorstGroupError(Criterion):
    """The error of the group that is worst off (never zero, unlike the gaps)."""

    levels = False

    @property
    def name(self) -> str:
        return "worst-group error"

    def of(self, found: Curves) -> xr.DataArray:
        return at_end(found["error"]).max("group", skipna=False)


@dataclass(frozen=True)
class WorstGroupLoss(Criterion):
    """The loss of the group that is worst off, at one step (None: the last).

    >>> loss = xr.DataArray([[0.5, 0.5], [0.1, 0.4]], dims=["time", "group"], coords={"time": [0, 10]})
    >>> WorstGroupLoss().of({"loss": loss}).item()
    0.4
    """

    levels = False
    step: int | None = None

    def __post_init__(self) -> None:
        if self.step is not None and (isinstance(self.step, bool) or not self.step >= 0):
            raise ValueError(f"`step` should not be negative. Found step = {self.step!r}.")

    @property
    def name(self) -> str:
        return "the worst group's loss at " + ("the end" if self.step is None else f"step {self.step}")

    def of(self, found: Curves) -> xr.DataArray:
        loss = found["loss"]
        if self.step is None:
            return at_end(loss).max("group", skipna=False)
        times = loss.coords["time"].values if "time" in loss.dims else np.zeros(1)
        if self.step > times[-1]:
            raise ValueError(f"`step` should lie within the {times[-1]} steps of the curves. Found {self.step}.")
        # Between two looks, a straight line in the logarithm of time.
        at = np.log1p(float(self.step))
        values = np.apply_along_axis(
            lambda one: np.interp(at, np.log1p(times), one), 0, loss.transpose("time", ...).values
        )
        return loss.isel(time=0, drop=True).copy(data=values).max("group", skipna=False)


@dataclass(frozen=True)
class WorstGroupArea(Criterion):
    """The loss of the group that is worst off, averaged over training: it counts how long, not only how much."""

    levels = False

    @property
    def name(self) -> str:
        return "the worst group's loss averaged over training"

    def of(self, found: Curves) -> xr.DataArray:
        return over_training(found["loss"].max("group", skipna=False))


@dataclass(frozen=True)
class FinalGap(Criterion):
    """The largest difference of losses between two groups at the last step. It may reward levelling down."""

    @property
    def name(self) -> str:
        return "the largest gap at the end"

    def of(self, found: Curves) -> xr.DataArray:
        return _spread(at_end(found["loss"]))


@dataclass(frozen=True)
class GapArea(Criterion):
    """The largest difference of losses between two groups, averaged over training. It may reward levelling down."""

    @property
    def name(self) -> str:
        return "the largest gap averaged over training"

    def of(self, found: Curves) -> xr.DataArray:
        return over_training(_spread(found["loss"]))


#: The criteria that are compared unless others are asked for.
CRITERIA: tuple[Criterion, ...] = (
    StatisticalParity(),
    EqualOpportunity(),
    EqualisedOdds(),
    AccuracyParity(),
    WorstGroupError(),
)
