"""Selection: the rule that picks the evaluation (the checkpoint) at which a run is judged.

>>> import tiltmeter as tm
>>> tm.fairness.selections.BestWorst().name
'the evaluation whose worst group is best'
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tiltmeter.record.trajectory import Trajectory

__all__ = ["BestMean", "BestWorst", "Last", "Selection"]


@dataclass(frozen=True)
class Selection(ABC):
    """A rule for choosing one evaluation of a run. A new one is a small frozen class.

    >>> @dataclass(frozen=True)
    ... class SmallestGap(Selection):
    ...     name = "the evaluation with the smallest gap"
    ...     def cost(self, values, shares):
    ...         return np.ptp(values, axis=2)
    >>> SmallestGap().evaluations(np.array([[[0.9, 0.5], [0.3, 0.2]]]), shares=np.array([0.5, 0.5]))
    array([1])

    `on` holds, for every run by name, the record of the same training on *other* points (`data.split(held_out=,
    judge=)` and a probe for each). Without it the evaluation is chosen on the points that judge it, and what is seen
    there is too good: the scorecard then calls it optimistic.

    Args:
        on: The same trainings on other points, by name: the evaluation is chosen there; None: on the points that judge
            it.
    """

    on: Mapping[str, Trajectory] | None = None

    @property
    @abstractmethod
    def name(self) -> str:
        """Which evaluation it chooses, for use in a sentence."""

    @abstractmethod
    def cost(self, values: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """What it minimises over evaluations, of shape (seed, time), from values of shape (seed, time, group)."""

    @property
    def optimistic(self) -> bool:
        """Whether the points that choose also judge."""
        return self.on is None

    def evaluations(self, values: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """The index of the evaluation chosen for every seed; looks at which the curve is not a number are never
        chosen."""
        cost = self.cost(values, shares)
        return np.asarray(np.argmin(np.where(np.isfinite(cost), cost, np.inf), axis=1))


@dataclass(frozen=True)
class Last(Selection):
    """The last evaluation: no choice, so nothing is too good.

    >>> Last().name
    'the last evaluation'
    """

    @property
    def name(self) -> str:
        return "the last evaluation"

    @property
    def optimistic(self) -> bool:
        return False

    def cost(self, values: np.ndarray, shares: np.ndarray) -> np.ndarray:  # noqa: ARG002
        return np.broadcast_to(-np.arange(values.shape[1], dtype=float), values.shape[:2])


@dataclass(frozen=True)
class BestMean(Selection):
    """The evaluation with the best mean, groups weighing as in training.

    >>> losses = np.array([[[0.5, 0.5], [0.1, 0.4], [0.2, 0.3]]])  # one seed, three evaluations, two groups
    >>> BestMean().evaluations(losses, shares=np.array([0.9, 0.1]))
    array([1])
    """

    @property
    def name(self) -> str:
        return "the evaluation with the best mean"

    def cost(self, values: np.ndarray, shares: np.ndarray) -> np.ndarray:
        return np.asarray(values @ shares)


@dataclass(frozen=True)
class BestWorst(Selection):
    """The evaluation whose worst group is best. It needs the groups of the points it chooses on.

    >>> losses = np.array([[[0.5, 0.5], [0.1, 0.4], [0.2, 0.3]]])  # one seed, three evaluations, two groups
    >>> BestWorst().evaluations(losses, shares=np.array([0.9, 0.1]))
    array([2])
    """

    @property
    def name(self) -> str:
        return "the evaluation whose worst group is best"

    def cost(self, values: np.ndarray, shares: np.ndarray) -> np.ndarray:  # noqa: ARG002
        return np.asarray(values.max(axis=2))
