"""DualAscent: bounds on group losses, enforced by Lagrange multipliers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from tiltmeter.interventions.group_intervention import GroupIntervention, Seen
from tiltmeter.interventions.shared.shares import by_group, checked_per_group

#: A final loss above its bound by more than this fraction is reported.
NOTICEABLE = 1e-2


@dataclass(frozen=True)
class DualAscent(GroupIntervention):
    """P = (p + z) / (1 + sum z) with multipliers dz/dt = rate (L - bound), held at z >= 0.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> sgd = tm.SGD(lr=0.2, interventions=(DualAscent(0.31, rate=5.0, by="draws"),))
    >>> tm.predict(problem, sgd, [0.0, 200.0])["loss"].values[-1].round(3)
    array([0.254, 0.31 ])

    It minimises the mean loss under the condition that the loss of each group stays below its bound. The division keeps
    the sum of the pulls at 1, so that a bound that cannot be met leads to the smallest worst-group loss instead of
    divergence.

    The bound is on the training loss in the long run, not at every moment of training.

    Args:
        bound: Loss that each group should stay below: one number, or one by group (infinity: no bound).
        rate: How fast the multipliers grow, per unit of the clock.
    """

    smooth = False
    cannot = "hold its bounds before training has had the time to reach them"

    bound: float | Mapping[Hashable, float]
    rate: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "bound", checked_per_group(self.bound, "bound", 0.0, strict=True))
        checked_per_group(self.rate, "rate", 0.0)

    def _bounds(self, seen: Seen) -> np.ndarray:
        return np.array(by_group(self.bound, seen.groups, "bound", "DualAscent"), dtype=float)

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:
        z = np.maximum(z, 0.0)
        return np.asarray((seen.shares + z) / (1.0 + z.sum(-1, keepdims=True)))

    def change(self, z: np.ndarray, seen: Seen) -> np.ndarray:
        bounds = self._bounds(seen)
        free = np.isinf(bounds)
        climb = self.rate * (seen.losses - np.where(free, 0.0, bounds))
        return np.asarray(np.where(free | ((z <= 0.0) & (climb < 0.0)), 0.0, climb))

    def project(self, z: np.ndarray) -> np.ndarray:
        return np.asarray(np.maximum(z, 0.0))

    def note(self, z: np.ndarray, seen: Seen) -> str:
        over = (seen.losses > self._bounds(seen) * (1.0 + NOTICEABLE)) & (z > 0.0)
        if not over.any():
            return ""
        at = tuple(np.argwhere(over)[0])
        return (
            f"DualAscent: at time {seen.time:g} the loss {seen.losses[at]:.4g} of group {seen.groups[at[-1]]!r} is "
            f"still above its bound {self._bounds(seen)[at[-1]]:g}. It may need more time, or the bound cannot be met."
        )
