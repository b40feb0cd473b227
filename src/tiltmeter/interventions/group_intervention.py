"""GroupIntervention: how much the mean gradient of every group counts now."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.shared.shares import FEW


@dataclass(frozen=True)
class Seen:
    """What a group intervention may see. The last dimension of arrays is the group; before it come grid, seeds or runs.

    >>> from tiltmeter.interventions import Balanced
    >>> seen = Seen(time=0.0, groups=("a", "b"), shares=np.array([0.9, 0.1]), losses=np.array([0.2, 0.7]))
    >>> Balanced().pull(np.zeros(2), seen)
    array([0.5, 0.5])

    In the theory, losses are exact.

    Args:
        time: Time of the step, in units of the clock.
        groups: Labels of the groups, in the order of the last dimension.
        shares: Share of each group in the training data.
        losses: Average loss of each group over earlier steps; NaN until it was seen.
        sizes: Training points of each group; None for fresh data.
        gram: Inner products of the groups' mean gradients, (..., G, G); None unless `sees_gram`.
    """

    time: float
    groups: tuple[Hashable, ...]
    shares: np.ndarray
    losses: np.ndarray
    sizes: np.ndarray | None = None
    gram: np.ndarray | None = None


@dataclass(frozen=True)
class GroupIntervention(Intervention, ABC):
    """Sets the pull P_g: how much the mean gradient of group g counts in the next step. Plain training: its share.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class WorstFirst(GroupIntervention):
    ...     def pull(self, z, seen):
    ...         return (seen.losses == seen.losses.max(-1, keepdims=True)).astype(float)
    >>> WorstFirst().pull(np.zeros(2), Seen(0.0, ("a", "b"), np.array([0.9, 0.1]), np.array([0.2, 0.7])))
    array([0., 1.])

    The pulls of a step are fixed *before* its batch is drawn, from the losses of earlier steps. So the gradient is
    unbiased and the equations of motion are its exact limit. `by` says how the pulls are applied: "weights" multiply
    the loss of a point by P_g / p_g, "draws" draw points of a group with probability P_g / sum P. Both have the same
    drift but different noise. `memory` is the number of points of a group over which its loss is averaged (0: only its
    last batch). The average lags by memory / (batch p_g) steps, so choose it well above 1 and well below d. The
    intervention looks at the losses and acts every `every` steps. A `rate` is per unit of the clock: per t in theory
    and simulation, per step in training; the same run has rate / d.

    A new intervention only needs `pull`. `z` is its state, of the shape that `start` returns.

    Args:
        by: How pulls are applied: "weights" multiply the loss of a point, "draws" draw points of a group more often.
        memory: Points of a group over which its loss is averaged; 0: only its last batch.
        every: Steps from one look at the losses to the next.
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
        if isinstance(self.every, bool) or self.every % 1 != 0 or self.every < 1:
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
        """Return a message about the state at the end of training; as a rule an empty one."""
        return ""


def pulls(law: GroupIntervention, z: np.ndarray, seen: Seen) -> np.ndarray:
    """Return the pulls of all groups now, divided by their sum for draws.

    >>> from tiltmeter.interventions import Tilted
    >>> seen = Seen(0.0, ("+", "-"), np.array([0.8, 0.2]), np.array([0.5, np.nan]))
    >>> pulls(Tilted(), np.zeros(2), seen)
    array([0.8, 0.2])

    As long as a group has not been seen and the intervention has no value for it, groups count as they are drawn.
    """
    found = np.asarray(law.pull(z, seen), dtype=float)
    if found.shape != seen.shares.shape:
        raise ValueError(
            f"`pull` of {type(law).__name__} should give one number per group, shape {seen.shares.shape}. "
            f"Found shape {found.shape}."
        )
    if unknown(found):
        blind = np.isnan(found).any(-1, keepdims=True) & np.isnan(seen.losses).any(-1, keepdims=True)
        found = np.where(blind, seen.shares, found)
    if law.by == "draws":
        if found.min() < 0.0:
            raise ValueError(f'{type(law).__name__} pulls a group negatively, which no draw can do: use by="weights".')
        found = found / np.add.reduce(found, axis=-1, keepdims=True)
    return found


def changed(law: GroupIntervention, z: np.ndarray, seen: Seen, duration: float) -> np.ndarray:
    """Return the state after `duration` on the clock; unchanged as long as some group has not been seen."""
    if type(law).change is GroupIntervention.change:
        return z
    moved = law.project(z + (law.change(z, seen) if duration == 1.0 else duration * law.change(z, seen)))
    if unknown(seen.losses):
        blind = np.isnan(seen.losses).any(-1)
        moved = np.where(blind.reshape(*blind.shape, *(1,) * (moved.ndim - blind.ndim)), z, moved)
    return np.asarray(moved)


def unknown(values: np.ndarray) -> bool:
    """Whether some value may be NaN; a few are added faster by Python than by NumPy."""
    total = sum(values.tolist()) if values.ndim == 1 and len(values) <= FEW else np.add.reduce(values, axis=None)
    return bool(total != total)


def gram_pulls(law: GroupIntervention, z: np.ndarray, seen: Seen, present: np.ndarray) -> np.ndarray:
    """Return pulls (runs, G) of a Gram intervention, each run with its own batch; groups not `present` get 0.

    >>> from tiltmeter.interventions import UPGrad
    >>> gram, here = np.diag([1.0, 0.0])[None], np.array([[True, False]])
    >>> seen = Seen(0.0, ("+", "-"), np.full((1, 2), 0.5), np.zeros((1, 2)), gram=gram)
    >>> gram_pulls(UPGrad(), np.zeros((1, 2)), seen, here)
    array([[1., 0.]])
    """
    found = np.zeros(seen.shares.shape)
    assert seen.gram is not None
    for pattern in np.unique(present, axis=0):
        runs = np.flatnonzero((present == pattern).all(1))
        here = np.flatnonzero(pattern)
        if not here.size:
            continue
        cut = np.ix_(runs, here)
        part = replace(
            seen,
            groups=tuple(seen.groups[g] for g in here),
            shares=seen.shares[cut],
            losses=seen.losses[cut],
            gram=seen.gram[np.ix_(runs, here, here)],
        )
        found[cut] = law.pull(z[cut] if z.shape == seen.shares.shape else z[runs], part)
    return found


def remembered(before: np.ndarray, sums: np.ndarray, counts: np.ndarray, points: float) -> np.ndarray:
    """Remembered losses moved towards the mean of `counts` new ones, by counts / (counts + points).

    >>> remembered(np.array([np.nan, 1.0, 1.0]), np.array([4.0, 4.0, 0.0]), np.array([2.0, 2.0, 0.0]), 2.0)
    array([2. , 1.5, 1. ])

    Groups without a new point keep their average; the first value of a group is taken as it is.
    """
    if np.minimum.reduce(counts, axis=None) > 0.0 and not np.isnan(np.add.reduce(before, axis=None)):  # as a rule
        return np.asarray(before + counts / (counts + points) * (sums / counts - before))
    new = counts > 0.0
    mean = sums / np.where(new, counts, 1.0)
    first = np.isnan(before)
    moved = before + counts / np.where(new, counts + points, 1.0) * (mean - before)
    return np.asarray(np.where(new, np.where(first, mean, moved), before))


@dataclass(frozen=True)
class GramIntervention(GroupIntervention):
    """A group intervention that sees the Gram matrix of group gradients and weighs the mean loss of each group in the
    batch.

    It costs one gradient per group and one more for the sum. Groups without a point in the batch are left out of the
    matrix, because a row of zeros would take a share of the pull.
    """

    sees_gram = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.by != "weights":
            raise ValueError(f'{type(self).__name__} weighs gradients of a batch that is drawn: `by` is "weights".')

    @property
    def routes(self) -> tuple[str, ...]:
        return "simulate", "forecast", "train"

    def cost(self, groups: int) -> float:
        return 1.0 + groups / self.every


def gram_of(seen: Seen) -> np.ndarray:
    """The Gram matrix that an intervention needs."""
    if seen.gram is None:
        raise ValueError("An intervention of gradients needs their Gram matrix. Found gram = None.")
    return seen.gram


def refuse_unreachable(law: GroupIntervention, groups: tuple[Hashable, ...], shares: np.ndarray) -> None:
    """A group that is never drawn cannot be pulled by weighing its points."""
    if law.by == "weights" and not law.sees_gram:
        for i, group in enumerate(groups):
            if (shares[..., i] <= 0.0).any():
                raise ValueError(
                    f"Group {group!r} is never drawn, so {type(law).__name__} cannot weigh it. "
                    'Use by="draws", or give it a proportion.'
                )
