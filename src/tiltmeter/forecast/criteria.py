"""Criteria: what a choice of group weights should make small, read from the group losses of a forecast."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np


class Criterion(ABC):
    """A number to make small, from losses (looks, groups) at the steps `looks`. `levels` warns that it rewards harm."""

    levels: bool = False

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is, for a sentence."""

    @abstractmethod
    def of(self, losses: np.ndarray, looks: np.ndarray) -> float:
        """Its value."""


@dataclass(frozen=True)
class WorstGroupLoss(Criterion):
    """The loss of the group that is worst off, at one step (None: the last).

    >>> WorstGroupLoss().of(np.array([[0.5, 0.5], [0.1, 0.4]]), np.array([0, 10]))
    0.4
    """

    step: int | None = None

    def __post_init__(self) -> None:
        if self.step is not None and (isinstance(self.step, bool) or not self.step >= 0):
            raise ValueError(f"`step` should not be negative. Found step = {self.step!r}.")

    @property
    def name(self) -> str:
        return "the worst group's loss at " + ("the end" if self.step is None else f"step {self.step}")

    def of(self, losses: np.ndarray, looks: np.ndarray) -> float:
        if self.step is None:
            return float(losses[-1].max())
        if self.step > looks[-1]:
            raise ValueError(f"`step` should lie within the {looks[-1]} steps of the forecast. Found {self.step}.")
        # Between two looks, a straight line in the logarithm of time.
        at = np.log1p(float(self.step))
        return float(max(np.interp(at, np.log1p(looks), column) for column in losses.T))


@dataclass(frozen=True)
class WorstGroupArea(Criterion):
    """The loss of the group that is worst off, averaged over all steps: it counts how long, not only how much."""

    @property
    def name(self) -> str:
        return "the worst group's loss averaged over training"

    def of(self, losses: np.ndarray, looks: np.ndarray) -> float:
        return float(np.trapezoid(losses.max(1), looks) / max(1, looks[-1]))


@dataclass(frozen=True)
class FinalGap(Criterion):
    """The largest difference of losses between two groups at the last step. It may reward levelling down."""

    levels = True

    @property
    def name(self) -> str:
        return "the largest gap at the end"

    def of(self, losses: np.ndarray, looks: np.ndarray) -> float:  # noqa: ARG002
        return float(np.ptp(losses[-1]))


@dataclass(frozen=True)
class GapArea(Criterion):
    """The largest difference of losses between two groups, averaged over all steps. It may reward levelling down."""

    levels = True

    @property
    def name(self) -> str:
        return "the largest gap averaged over training"

    def of(self, losses: np.ndarray, looks: np.ndarray) -> float:
        return float(np.trapezoid(np.ptp(losses, axis=1), looks) / max(1, looks[-1]))
