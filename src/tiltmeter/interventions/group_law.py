"""GroupLaw: how much the mean gradient of every group counts now."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from tiltmeter.interventions.intervention import Intervention


@dataclass(frozen=True)
class Seen:
    """What a group law may see. The last dimension of arrays is the group; before it come grid, seeds or runs.

    `losses` are averages over earlier steps, NaN until a group was seen (in the theory: the exact losses). `sizes` are
    training points per group, None for fresh data. `gram` holds the inner products of the groups' mean gradients, (...,
    G, G), for laws with `sees_gram`.
    """

    time: float
    groups: tuple[Hashable, ...]
    shares: np.ndarray
    losses: np.ndarray
    sizes: np.ndarray | None = None
    gram: np.ndarray | None = None


@dataclass(frozen=True)
class GroupLaw(Intervention, ABC):
    """Sets the pull P_g: how much the mean gradient of group g counts in the next step. Plain training: its share.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class WorstFirst(GroupLaw):
    ...     def pull(self, z, seen):
    ...         return (seen.losses == seen.losses.max(-1, keepdims=True)).astype(float)
    >>> WorstFirst().pull(np.zeros(2), Seen(0.0, ("a", "b"), np.array([0.9, 0.1]), np.array([0.2, 0.7])))
    array([0., 1.])

    The pulls of a step are fixed *before* its batch is drawn, from the losses of earlier steps. So the gradient is
    unbiased and the equations of motion are its exact limit. `by` says how the pulls are applied: "weights" multiply
    the loss of a point by P_g / p_g, "draws" draw points of a group with probability P_g / sum P. Both have the same
    drift but different noise. `memory` is the number of points of a group over which its loss is averaged (0: only its
    last batch). The average lags by memory / (batch p_g) steps, so choose it well above 1 and well below d. The law
    looks and acts every `every` steps. A `rate` is per unit of the clock: per t in theory and simulation, per step in
    training; the same run has rate / d.

    A new law only needs `pull`. `z` is its state, of the shape that `start` returns.
    """

    sees_gram: ClassVar[bool] = False
    #: Whether the pull depends only on the shares, so that it is the same as weights or proportions.
    constant: ClassVar[bool] = False
    #: Whether pull and change are smooth functions of losses and state, for integrators.
    smooth: ClassVar[bool] = True
    changes = "what groups count"

    by: Literal["weights", "draws"] = field(default="weights", kw_only=True)
    memory: float = field(default=64.0, kw_only=True)
    every: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        if self.by not in ("weights", "draws"):
            raise ValueError(f'`by` should be "weights" or "draws". Found by = {self.by!r}.')
        if isinstance(self.memory, bool) or not 0.0 <= self.memory < np.inf:
            raise ValueError(f"`memory` should be a number of points, at least 0. Found memory = {self.memory!r}.")
        if isinstance(self.every, bool) or self.every != int(self.every) or self.every < 1:
            raise ValueError(f"`every` should be a whole number of steps, at least 1. Found every = {self.every!r}.")

    @property
    def gain(self) -> float:
        """How strongly the logarithm of a pull reacts at once to the loss of its group; 0 if only its state reacts."""
        return 0.0

    @property
    def routes(self) -> tuple[str, ...]:
        stacked = self.by == "weights" or self.constant
        return ("predict", "simulate", "forecast", "train", *(("ensemble",) if stacked else ()))

    def start(self, shares: np.ndarray) -> np.ndarray:
        """The state before the first step."""
        return np.zeros_like(shares)

    @abstractmethod
    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:
        """Return how much every group counts now."""

    def change(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        """Return dz per unit of the clock."""
        return np.zeros_like(z)

    def project(self, z: np.ndarray) -> np.ndarray:
        """Return the nearest allowed state."""
        return z

    def note(self, z: np.ndarray, seen: Seen) -> str:  # noqa: ARG002
        """Return a message about the state at the end of training; None as a rule."""
        return ""
