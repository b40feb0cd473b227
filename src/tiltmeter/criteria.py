"""Criteria: definitions of unfairness, each a number to minimise, for trained students or for a whole training run.

>>> import tiltmeter as tm
>>> theory = tm.predict(*tm.theory.cases.three_phases())
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

__all__ = [
    "CRITERIA",
    "AccuracyParity",
    "Criterion",
    "EqualOpportunity",
    "EqualisedOdds",
    "FinalGap",
    "GapArea",
    "PredictiveParity",
    "StatisticalParity",
    "WorstGroupArea",
    "WorstGroupError",
    "WorstGroupLoss",
]


#: Curves by name: a Trajectory, or the Dataset of `equilibrium`, which has no times.
Curves: TypeAlias = Mapping[Any, xr.DataArray]


class Criterion(ABC):
    """A measure of unfairness: lower is better. A new one is a small frozen class.

    >>> @dataclass(frozen=True)
    ... class WorstEver(Criterion):
    ...     name = "the largest error of a group at any time"
    ...     def of(self, found):
    ...         return found["error"].max(["time", "group"])
    >>> WorstEver().of({"error": xr.DataArray([[0.5, 0.4], [0.1, 0.2]], dims=["time", "group"])}).item()
    0.5

    `of` takes curves by name, from a Dataset of `equilibrium` or from a Trajectory, of which it uses the last time
    unless stated otherwise. With several pairs of groups the worst pair counts.
    """

    #: Whether it can also be reduced by making the better-off group worse.
    levels: ClassVar[bool] = True

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the criterion, for use in a sentence."""

    @abstractmethod
    def of(self, found: Curves) -> xr.DataArray:
        """Its value, over the grid of the curves, if any."""


def at_end(curve: xr.DataArray) -> xr.DataArray:
    """The curve at its last time, or unchanged if it has no times."""
    return curve.isel(time=-1) if "time" in curve.dims else curve


def over_training(curve: xr.DataArray) -> xr.DataArray:
    """The curve averaged over time, linear between observations.

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
    """All groups are decided positive equally often.

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
    """Positives of all groups are decided positive equally often.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> result = tm.equilibrium(problem, tm.Logistic(), samples=2.0, ridge=0.3)
    >>> result.tpr.values.round(3), round(EqualOpportunity().of(result).item(), 3)
    (array([0.765, 0.676]), 0.089)
    """

    @property
    def name(self) -> str:
        return "equal opportunity"

    def of(self, found: Curves) -> xr.DataArray:
        return _worst(found["tpr_gap"])


@dataclass(frozen=True)
class EqualisedOdds(Criterion):
    """Positives, and negatives, of all groups are decided positive equally often.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5, label_bias=(0.5, 0.0))
    >>> result = tm.equilibrium(problem, tm.Logistic(), samples=2.0, ridge=0.3)
    >>> result.tpr.values.round(3), result.fpr.values.round(3), round(EqualisedOdds().of(result).item(), 3)
    (array([0.979, 0.918]), array([0.772, 0.687]), 0.086)
    """

    @property
    def name(self) -> str:
        return "equalised odds"

    def of(self, found: Curves) -> xr.DataArray:
        return _worst(found["equalised_odds"])


@dataclass(frozen=True)
class AccuracyParity(Criterion):
    """Decisions are wrong equally often in all groups.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> result = tm.equilibrium(problem, tm.Logistic(), samples=2.0, ridge=0.3)
    >>> result.error.values.round(3), round(AccuracyParity().of(result).item(), 3)
    (array([0.235, 0.324]), 0.089)
    """

    @property
    def name(self) -> str:
        return "accuracy parity"

    def of(self, found: Curves) -> xr.DataArray:
        return _worst(found["error_gap"])


@dataclass(frozen=True)
class PredictiveParity(Criterion):
    """A positive decision is right equally often in all groups.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5, label_bias=(0.5, 0.0))
    >>> result = tm.equilibrium(problem, tm.Logistic(), samples=2.0, ridge=0.3)
    >>> result.ppv.values.round(3), round(PredictiveParity().of(result).item(), 3)
    (array([0.801, 0.572]), 0.229)
    """

    @property
    def name(self) -> str:
        return "predictive parity"

    def of(self, found: Curves) -> xr.DataArray:
        return _worst(found["ppv_gap"])


@dataclass(frozen=True)
class WorstGroupError(Criterion):
    """The error of the worst-off group (never zero, unlike the gaps).

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> result = tm.equilibrium(problem, tm.Logistic(), samples=2.0, ridge=0.3)
    >>> result.error.values.round(3), round(WorstGroupError().of(result).item(), 3)
    (array([0.235, 0.324]), 0.324)
    """

    levels = False

    @property
    def name(self) -> str:
        return "worst-group error"

    def of(self, found: Curves) -> xr.DataArray:
        return at_end(found["error"]).max("group", skipna=False)


@dataclass(frozen=True)
class WorstGroupLoss(Criterion):
    """The loss of the worst-off group, at one step (None: the last).

    >>> loss = xr.DataArray([[0.5, 0.5], [0.1, 0.4]], dims=["time", "group"], coords={"time": [0, 10]})
    >>> WorstGroupLoss().of({"loss": loss}).item()
    0.4

    Args:
        step: Step at which the loss counts; None: the last.
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
        # Between two observations, linear in the logarithm of time.
        at = np.log1p(float(self.step))
        values = np.apply_along_axis(
            lambda one: np.interp(at, np.log1p(times), one), 0, loss.transpose("time", ...).values
        )
        return loss.isel(time=0, drop=True).copy(data=values).max("group", skipna=False)


@dataclass(frozen=True)
class WorstGroupArea(Criterion):
    """The loss of the worst-off group, averaged over training: it includes how long a group is worse off, not only
    how much.

    >>> loss = xr.DataArray([[0.5, 0.5], [0.1, 0.4], [0.2, 0.3]], dims=["time", "group"], coords={"time": [0, 5, 10]})
    >>> round(WorstGroupArea().of({"loss": loss}).item(), 3)
    0.4
    """

    levels = False

    @property
    def name(self) -> str:
        return "the worst group's loss averaged over training"

    def of(self, found: Curves) -> xr.DataArray:
        return over_training(found["loss"].max("group", skipna=False))


@dataclass(frozen=True)
class FinalGap(Criterion):
    """The largest difference of losses between two groups at the last step. It may be reduced by making everyone
    worse.

    >>> loss = xr.DataArray([[0.5, 0.5], [0.1, 0.4], [0.2, 0.3]], dims=["time", "group"], coords={"time": [0, 5, 10]})
    >>> round(FinalGap().of({"loss": loss}).item(), 3)
    0.1
    """

    @property
    def name(self) -> str:
        return "the largest gap at the end"

    def of(self, found: Curves) -> xr.DataArray:
        return _spread(at_end(found["loss"]))


@dataclass(frozen=True)
class GapArea(Criterion):
    """The largest difference of losses between two groups, averaged over training. It may be reduced by making
    everyone worse.

    >>> loss = xr.DataArray([[0.5, 0.5], [0.1, 0.4], [0.2, 0.3]], dims=["time", "group"], coords={"time": [0, 5, 10]})
    >>> round(GapArea().of({"loss": loss}).item(), 3)
    0.175
    """

    @property
    def name(self) -> str:
        return "the largest gap averaged over training"

    def of(self, found: Curves) -> xr.DataArray:
        return over_training(_spread(found["loss"]))


#: The criteria that are compared by default.
CRITERIA: tuple[Criterion, ...] = (
    StatisticalParity(),
    EqualOpportunity(),
    EqualisedOdds(),
    AccuracyParity(),
    WorstGroupError(),
)
