"""own_threshold: the threshold at which one group would get the rate of another, and what that costs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tiltmeter.analysis.last_look import LastLook, last_look
from tiltmeter.analysis.last_probabilities import last_probabilities
from tiltmeter.record.trajectory import Trajectory

#: Fewer counted points than this choose no threshold.
FEWEST = 10


@dataclass(frozen=True)
class OwnThreshold:
    """Saying yes to `group` above `threshold` instead of 0.5 gives it the rate of `other`: `rate`, before `before`.

    `ppv` is the share of its yeses that would be right, `ppv_before` the one now; `error` and `error_before` likewise.
    Chosen on the points that judge it, so slightly too good; and it uses the group in every decision, which may be
    unlawful.
    """

    group: Hashable
    other: Hashable
    curve: Literal["tpr", "fpr"]
    threshold: float
    before: float
    rate: float
    ppv_before: float
    ppv: float
    error_before: float
    error: float


def own_threshold(
    trajectory: Trajectory, curve: Literal["tpr", "fpr"], group: Hashable, other: Hashable
) -> OwnThreshold | None:
    """The threshold that levels a rate; None without probabilities, with a rule of one's own, or with few points.

    >>> import xarray as xr
    >>> from tiltmeter.record import Origin
    >>> chance = np.concatenate([np.linspace(0.2, 0.6, 100), np.linspace(0.4, 0.8, 100)])
    >>> coords = {"time": [9], "group": ("point", np.repeat(["a", "b"], 100)), "positive": ("point", [True] * 200)}
    >>> arrays = {"probability": chance, "loss": chance, "decided_positive": chance > 0.5}
    >>> points = {name: xr.DataArray(one[None], dims=("time", "point"), coords=coords) for name, one in arrays.items()}
    >>> found = own_threshold(Trajectory({}, "step", Origin("training"), points=points), "tpr", "a", "b")
    >>> round(found.threshold, 2), found.before, found.rate
    (0.3, 0.25, 0.75)
    """
    look = last_look(trajectory)
    chance = None if look is None else last_probabilities(trajectory, look)
    if look is None or chance is None:
        return None
    counted = look.positive == (curve == "tpr")
    mine, theirs = (look.codes == look.groups.index(one) for one in (group, other))
    if (mine & counted).sum() < FEWEST or (theirs & counted).sum() < FEWEST:
        return None
    wanted = float(look.decided[:, theirs & counted].mean())
    threshold = float(np.quantile(chance[:, mine & counted], 1.0 - wanted))
    now, then = look.decided[:, mine], chance[:, mine] > threshold
    before, rate = (float(part[:, counted[mine]].mean()) for part in (now, then))
    ppv_before, error_before = _right(now, look, mine)
    ppv, error = _right(then, look, mine)
    return OwnThreshold(group, other, curve, threshold, before, rate, ppv_before, ppv, error_before, error)


def _right(decided: np.ndarray, look: LastLook, mine: np.ndarray) -> tuple[float, float]:
    """Share of yeses that are right, and share of wrong decisions."""
    positive = np.broadcast_to(look.positive[mine], decided.shape)
    said = int(decided.sum())
    return (float((decided & positive).sum() / said) if said else float("nan"), float((decided != positive).mean()))
