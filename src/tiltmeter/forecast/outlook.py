"""Outlook: who leads now, who is forecast to lead at the end, and whether that is decided."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from tiltmeter.record import Trajectory
from tiltmeter.shown_text import NotebookText

#: A nowcast is taken to be wrong by this part of the movement of a gap that it forecasts; fixed before it was judged.
WRONG = 0.2
#: A final leader is named if its lead is so many times the error.
SURE = 2.0
#: How often a leader is named now, among groups that are equal.
LEVEL = 0.05
#: The study of 24 trainings in `tests/forecast/test_early_warning.py`: final leaders named where the end showed one,
#: and how many wrongly; ends of a shown lead that were dated, and how many within a factor 1.5.
NAMED, WRONGLY, DATED, NEAR = 64, 0, 3, 2


def spelled(step: float) -> str:
    """Write a step with three significant figures, never in exponent notation.

    >>> spelled(0.5), spelled(12345.6)
    ('0.5', '12300')
    """
    return f"{float(f'{step:.3g}'):.12g}"


@dataclass(frozen=True)
class Outlook(NotebookText):
    """What can be said at one step of a training about its end.

    `leader` is the group whose lead over every other is shown now: by the standard errors of the held-out points, with
    Bonferroni's correction for all pairs of groups; None if no leader is shown. `lead` is how far the leader at the end
    is forecast to be ahead of the next group, `error` how wrong that may be: the standard error of the held-out points,
    a fifth of how far the gap is forecast to move from here, and half the range of its networks, if there are several.
    `change` is the step near which a lead that is shown is forecast to end; None if it does not.
    """

    step: int
    steps: int
    leader: Hashable | None
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
        dated = self.leader not in (None, self.leader_at_end) and self.change is not None
        return wrong + (f", and {NEAR} of {DATED} dates were within a factor 1.5." if dated else ".")

    def __str__(self) -> str:
        if not self.decided:
            return f"Step {self.step}: nothing seen now decides who leads at the end, step {self.steps}."
        if self.leader is None:
            said = (
                f"Step {self.step}: no leader is shown now; {self.leader_at_end} is forecast to lead at the end, step "
                f"{self.steps}."
            )
        elif self.leader_at_end == self.leader:
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
    given = rest[curve] if "seed" in rest[curve].dims else rest[curve].expand_dims("seed")
    each = given.transpose("seed", "time", "group").values
    if given.attrs.get("better") == "higher":
        each = -each
    losses, steps = each.mean(0), given["time"].values
    groups, errors = given["group"].values.tolist(), _errors(rest, curve)
    now, end = int(np.argmin(losses[0])), int(np.argmin(losses[-1]))
    others = [place for place in range(len(groups)) if place != end]
    second = min(others, key=lambda place: losses[-1, place])
    gap = losses[:, second] - losses[:, end]
    noise = 0.0 if errors is None else float(np.hypot(errors[-1, end], errors[-1, second]))
    moved = float(np.abs(gap - gap[0]).max())
    apart = float(np.ptp(each[:, -1, second] - each[:, -1, end])) / 2.0
    shown = errors is not None and _is_shown(losses[0], errors[0], now)
    ended = np.argmin(losses, axis=1) != now
    return Outlook(
        int(steps[0]),
        int(steps[-1]),
        groups[now] if shown else None,
        groups[end],
        float(gap[-1]),
        float(np.linalg.norm([noise, WRONG * moved, apart])),
        _between(losses, steps, now, int(np.argmax(ended))) if shown and ended.any() else None,
    )


def _errors(rest: Trajectory, curve: str) -> np.ndarray | None:
    """The standard errors of the held-out points, (evaluations, groups); None where they were not recorded."""
    if f"{curve}_se" not in rest:
        return None
    given = rest[f"{curve}_se"]
    return np.asarray((given.mean("seed") if "seed" in given.dims else given).transpose("time", "group").values)


def _is_shown(losses: np.ndarray, errors: np.ndarray, leader: int) -> bool:
    """Whether a lead over every other group is more than chance, at `LEVEL` for all pairs of groups together."""
    pairs = len(losses) * (len(losses) - 1) // 2
    times = NormalDist().inv_cdf(1.0 - LEVEL / (2 * pairs))
    gaps, noise = np.delete(losses - losses[leader], leader), np.delete(np.hypot(errors, errors[leader]), leader)
    return bool((gaps > times * noise).all())


def _between(losses: np.ndarray, steps: np.ndarray, leader: int, row: int) -> float:
    """The step between two looks at which the leader is overtaken, linear in time."""
    ahead = np.delete(losses, leader, axis=1).min(1) - losses[:, leader]
    before, after = float(ahead[row - 1]), float(ahead[row])
    part = before / (before - after) if before > after else 0.5
    return float(steps[row - 1] + part * (steps[row] - steps[row - 1]))
