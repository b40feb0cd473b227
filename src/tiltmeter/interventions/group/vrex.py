"""VREx: a penalty on the variance of group losses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.interventions.group_intervention import GroupIntervention, Seen
from tiltmeter.interventions.shared.shares import checked_per_group


@dataclass(frozen=True)
class VREx(GroupIntervention):
    """P = (1 + 2 beta (L - mean L)) / G: the gradient of mean + beta * variance over groups, Krueger et al. (2021).

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
    >>> tm.predict(problem, tm.SGD(lr=0.2, interventions=(VREx(10.0),)), [0.0, 60.0])["loss"].values[-1].round(3)
    array([0.292, 0.286])

    A pull may be negative, which *raises* the loss of a group and can make training diverge. `positive` replaces
    negative pulls by zero, and is needed for draws. A large weight on a rare group also adds noise: see
    `docs/interventions.md`.

    Args:
        beta: How much the variance over groups counts beside the mean.
        positive: Whether negative pulls are replaced by zero; draws need it.
    """

    smooth = False
    cannot = "tell helping the worst group from harming the best"

    beta: float = 10.0
    positive: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_per_group(self.beta, "beta", 0.0)
        if self.by == "draws" and not self.positive:
            raise ValueError('A group cannot be drawn a negative number of times: by="draws" needs positive=True.')

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        away = seen.losses - seen.losses.mean(-1, keepdims=True)
        pulls = (1.0 + 2.0 * self.beta * away) / seen.losses.shape[-1]
        return np.maximum(pulls, 0.0) if self.positive else np.asarray(pulls)
