"""Criteria: what one may mean by unfair, each a number that a trained student should make small."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xarray as xr


class Criterion(ABC):
    """An unfairness of trained students: zero is fair, lower is better. A new one is a small frozen class.

    `of` takes a Dataset of observables, as from `equilibrium`; over several pairs of groups the worst counts.
    """

    name: ClassVar[str]

    @abstractmethod
    def of(self, found: xr.Dataset) -> xr.DataArray:
        """The unfairness, over whatever grid the Dataset has."""


def _worst(gap: xr.DataArray) -> xr.DataArray:
    return xr.DataArray(np.abs(gap)).max("pair", skipna=False)


@dataclass(frozen=True)
class StatisticalParity(Criterion):
    """Groups are decided positive equally often.

    >>> gap = xr.DataArray([-0.25], dims="pair")
    >>> StatisticalParity().of(xr.Dataset({"positive_rate_gap": gap})).item()
    0.25
    """

    name: ClassVar[str] = "statistical parity"

    def of(self, found: xr.Dataset) -> xr.DataArray:
        return _worst(found["positive_rate_gap"])


@dataclass(frozen=True)
class EqualOpportunity(Criterion):
    """Positives of all groups are recognised equally often."""

    name: ClassVar[str] = "equal opportunity"

    def of(self, found: xr.Dataset) -> xr.DataArray:
        return _worst(found["tpr_gap"])


@dataclass(frozen=True)
class EqualisedOdds(Criterion):
    """Positives, and negatives, of all groups are decided positive equally often."""

    name: ClassVar[str] = "equalised odds"

    def of(self, found: xr.Dataset) -> xr.DataArray:
        return _worst(found["equalised_odds"])


@dataclass(frozen=True)
class AccuracyParity(Criterion):
    """Decisions are wrong equally often in all groups."""

    name: ClassVar[str] = "accuracy parity"

    def of(self, found: xr.Dataset) -> xr.DataArray:
        return _worst(found["error_gap"])


@dataclass(frozen=True)
class PredictiveParity(Criterion):
    """A positive decision is right equally often in all groups."""

    name: ClassVar[str] = "predictive parity"

    def of(self, found: xr.Dataset) -> xr.DataArray:
        return _worst(found["ppv_gap"])


@dataclass(frozen=True)
class WorstGroupError(Criterion):
    """The error of the group that is worst off (never zero, unlike the gaps)."""

    name: ClassVar[str] = "worst-group error"

    def of(self, found: xr.Dataset) -> xr.DataArray:
        return found["error"].max("group", skipna=False)


#: The criteria that are compared unless others are asked for.
CRITERIA: tuple[Criterion, ...] = (
    StatisticalParity(),
    EqualOpportunity(),
    EqualisedOdds(),
    AccuracyParity(),
    WorstGroupError(),
)
