"""GroupDRO: groups with a large loss count more and more, by exponentiated gradient ascent."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tiltmeter.interventions.group_intervention import GroupIntervention, Seen
from tiltmeter.interventions.shared.shares import by_group, checked_per_group, softmax


@dataclass(frozen=True)
class GroupDRO(GroupIntervention):
    """P = softmax(z + proportional L) with dz/dt = rate (L + adjust / sqrt(n)), Sagawa et al. (2020).

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> times = [0.0, *np.geomspace(0.02, 60.0, 200)]
    >>> laws = GroupDRO(30.0, begin="shares", by="draws"), GroupDRO(30.0, 150.0, begin="shares", by="draws")
    >>> runs = [tm.predict(problem, tm.SGD(lr=0.2, interventions=(law,)), times) for law in laws]
    >>> [len(tm.leaders(run, "loss").changes) for run in runs]
    [15, 1]

    With the `rate` alone this is an integral controller: it ends at equal losses, but oscillates on the way. The
    `proportional` term damps the oscillation. `adjust` is the constant C of the paper, divided by the square root of
    the number of a group's training points. With fresh data there is no such number: give the adjustment itself by
    group.

    It equalises the training loss plus the adjustment. Once the training losses of all groups are zero, it has no
    signal left.

    Args:
        rate: Step size of the paper, per unit of the clock.
        proportional: Damps the oscillation; 2 to 8 times the rate worked.
        adjust: Constant C of the paper, divided by sqrt(training points of the group); by group with fresh data.
        floor: No pull falls below it.
        begin: Pulls at the start: "equal", as published, or "shares".
    """

    cannot = "steer where the training losses of all groups vanish"

    rate: float = 0.01
    proportional: float = 0.0
    adjust: float | Mapping[Hashable, float] = 0.0
    floor: float = 0.0
    begin: Literal["equal", "shares"] = "equal"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("rate", "proportional"):
            checked_per_group(getattr(self, name), name, 0.0)
        object.__setattr__(self, "adjust", checked_per_group(self.adjust, "adjust", 0.0))
        if not 0.0 <= self.floor < 1.0:
            raise ValueError(f"`floor` should lie in [0, 1). Found floor = {self.floor}.")
        if self.begin not in ("equal", "shares"):
            raise ValueError(f'`begin` should be "equal" or "shares". Found begin = {self.begin!r}.')

    @property
    def gain(self) -> float:
        return float(self.proportional)

    def start(self, shares: np.ndarray) -> np.ndarray:
        return np.zeros_like(shares) if self.begin == "equal" else np.log(shares)

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:
        number = z.shape[-1]
        if self.floor * number >= 1.0:
            raise ValueError(
                f"`floor` should lie below 1 / {number} for {number} groups. Found floor = {self.floor:g}."
            )
        q = softmax(z + self.proportional * seen.losses if self.proportional else z)
        return self.floor + (1.0 - number * self.floor) * q if self.floor else q

    def change(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        return np.asarray(self.rate * (seen.losses + self._adjustment(seen) if self.adjust else seen.losses))

    def _adjustment(self, seen: Seen) -> Any:
        if isinstance(self.adjust, Mapping):
            return np.array(by_group(self.adjust, seen.groups, "adjust", "GroupDRO"))
        if seen.sizes is None:
            raise ValueError(
                f"`adjust` = {self.adjust:g} of GroupDRO is divided by the root of a group's training points, and "
                "fresh data have no such number: give the adjustment by group, as in adjust={'+': 0.1, '-': 0.3}."
            )
        return self.adjust / np.sqrt(seen.sizes)
