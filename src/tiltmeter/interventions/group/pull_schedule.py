"""PullSchedule: pulls given as functions of time."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from tiltmeter.interventions.group_intervention import GroupIntervention, Seen
from tiltmeter.interventions.shared.shares import by_group
from tiltmeter.schedules import Schedule


@dataclass(frozen=True)
class PullSchedule(GroupIntervention):
    """P_g(t) proportional to a schedule, or a number, for every group: what `optimal_schedule` returns.

    >>> import tiltmeter as tm
    >>> early = tm.schedules.Steps(starts=(0.0, 10.0), values=(0.8, 0.5))
    >>> law = PullSchedule({"+": early, "-": tm.schedules.Steps((0.0, 10.0), (0.2, 0.5))}, by="draws")
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> tm.predict(problem, tm.SGD(lr=0.2, interventions=(law,)), [5.0, 20.0])["pull"].values
    array([[0.8, 0.2],
           [0.5, 0.5]])

    It does not react to losses: a schedule that is best for one problem need not be best for another.

    Args:
        pulls: For every group, a number or a schedule over time.
    """

    cannot = "react: it does not look at losses"

    pulls: Mapping[Hashable, Schedule | float]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.pulls, Mapping) or not self.pulls:
            raise TypeError(f"`pulls` should map groups to schedules or numbers. Found {self.pulls!r}.")
        object.__setattr__(self, "pulls", dict(self.pulls))
        for group, one in self.pulls.items():
            if not callable(one) and (isinstance(one, (bool, str)) or not 0.0 <= one < np.inf):
                raise ValueError(f"`pulls[{group!r}]` should be a schedule or a number of at least 0. Found {one!r}.")

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        given = by_group(self.pulls, seen.groups, "pulls", "PullSchedule")
        now = np.array([float(one(seen.time)) if callable(one) else float(one) for one in given])
        if not (np.isfinite(now).all() and (now >= 0).all() and now.sum() > 0):
            raise ValueError(f"`pulls` should be at least 0, not all 0. Found {now.tolist()} at time {seen.time:g}.")
        return np.broadcast_to(now / now.sum(), seen.shares.shape).copy()
