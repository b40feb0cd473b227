"""Outlook: who leads now, who is forecast to lead at the end, and whether that is decided."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from tiltmeter.forecast.horizon import spelled
from tiltmeter.notebook_text import NotebookText
from tiltmeter.record import Trajectory

#: A nowcast is taken to be wrong by this part of the movement of a gap that it forecasts; fixed before it was judged.
WRONG = 0.2
#: A final leader is named if its lead is so many times the error.
SURE = 2.0
#: The study of 24 trainings in `tests/forecast/test_early_warning.py`: final leaders named where the end showed one,
#: and how many wrongly; changes of the lead that were dated, and how many within a factor 1.5.
NAMED, WRONGLY, DATED, NEAR = 60, 0, 4, 3


@dataclass(frozen=True)
class Outlook(NotebookText):
    """What can be said at one step of a training about its end.

    `lead` is how far the leader at the end is forecast to be ahead of the next group, `error` how wrong that may be:
    the standard error of the held-out points, and a fifth of how far the gap is forecast to move from here. `change` is
    the step near which the lead is forecast to change for the first time; None if it does not.
    """

    step: int
    steps: int
    leader: Hashable
    leader_at_end: Hashable
    lead: float
    error: float
    change: float | None

    @property
    def decided(self) -> bool:
        """Whether the lead at the end is larger than its error allows for."""
        return self.lead > SURE * self.error

    @property
    def error_rate(self) -> str:
        """How often such sentences were wrong in the study of the early warning; nothing where nobody is named."""
        if not self.decided:
            return ""
        wrong = f"In a study {WRONGLY} of {NAMED} leaders named so were wrong"
        dated = self.leader_at_end != self.leader and self.change is not None
        return wrong + (f", and {NEAR} of {DATED} dates were within a factor 1.5." if dated else ".")

    def __str__(self) -> str:
        if not self.decided:
            return f"Step {self.step}: nothing seen now decides who leads at the end, step {self.steps}."
        if self.leader_at_end == self.leader:
            said = f"Step {self.step}: {self.leader} leads and is forecast to lead at the end, step {self.steps}."
        else:
            near = "" if self.change is None else f" near step {spelled(self.change)}"
            said = (
                f"Step {self.step}: {self.leader}'s lead will end{near}; {self.leader_at_end} is forecast to lead at "
                f"the end, step {self.steps}."
            )
        return f"{said} {self.error_rate}"


def outlook_of(rest: Trajectory, curve: str = "loss") -> Outlook:
    """What a nowcast says; replicas are averaged.

    >>> import xarray as xr
    >>> from tiltmeter.record import Origin
    >>> coords = {"time": [10, 20, 40], "group": ["a", "b"]}
    >>> loss = xr.DataArray([[0.5, 0.6], [0.4, 0.4], [0.3, 0.1]], dims=("time", "group"), coords=coords)
    >>> print(outlook_of(Trajectory({"loss": loss, "loss_se": 0.001 * loss}, "step", Origin("forecast"))))
    Step 10: a's lead will end near step 20; b is forecast to lead at the end, step 40. In a study ...
    """
    given = rest[curve]
    values = (given.mean("seed") if "seed" in given.dims else given).transpose("time", "group")
    if given.attrs.get("better") == "higher":
        values = -values
    losses, steps = values.values, values["time"].values
    groups = values["group"].values.tolist()
    now, end = int(np.argmin(losses[0])), int(np.argmin(losses[-1]))
    others = [place for place in range(len(groups)) if place != end]
    second = min(others, key=lambda place: losses[-1, place])
    gap = losses[:, second] - losses[:, end]
    noise = _noise(rest, curve, end, second)
    moved = float(np.abs(gap - gap[0]).max())
    leads = np.argmin(losses, axis=1) != now
    change = _between(losses, steps, now, int(np.argmax(leads))) if leads.any() else None
    return Outlook(
        int(steps[0]),
        int(steps[-1]),
        groups[now],
        groups[end],
        float(gap[-1]),
        float(np.hypot(noise, WRONG * moved)),
        change,
    )


def _noise(rest: Trajectory, curve: str, one: int, other: int) -> float:
    """The standard error of the last gap from the held-out points."""
    if f"{curve}_se" not in rest:
        return 0.0
    given = rest[f"{curve}_se"]
    last = (given.mean("seed") if "seed" in given.dims else given).transpose("time", "group").values[-1]
    return float(np.hypot(last[one], last[other]))


def _between(losses: np.ndarray, steps: np.ndarray, leader: int, row: int) -> float:
    """The step between two looks at which the leader is overtaken, linear in time."""
    ahead = np.delete(losses, leader, axis=1).min(1) - losses[:, leader]
    before, after = float(ahead[row - 1]), float(ahead[row])
    part = before / (before - after) if before > after else 0.5
    return float(steps[row - 1] + part * (steps[row] - steps[row - 1]))
