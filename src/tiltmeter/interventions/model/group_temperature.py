"""GroupTemperature: the confidence of every group set right on held-out points."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.interventions.kinds import ModelIntervention
from tiltmeter.interventions.shared.by_group import FittedGroups, held_out_scores

#: Temperatures are looked for between this and its inverse.
LARGEST = 1e3


@dataclass(frozen=True)
class GroupTemperature(ModelIntervention):
    """score / T_g, with the temperature of every group that minimises its held-out loss: Guo et al. (2017), by group.

    >>> import torch, tiltmeter as tm
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(4000, 1)).astype("float32")
    >>> data = tm.GroupedData(x, (rng.random(4000) < 1 / (1 + np.exp(-x[:, 0]))).astype(int), ["a", "b"] * 2000)
    >>> model = torch.nn.Linear(1, 1)
    >>> with torch.no_grad():
    ...     _ = model.weight.fill_(3.0), model.bias.zero_()  # three times too sure
    >>> (1 / GroupTemperature().deliver(model, data).scale).round(decimals=1).tolist()
    [3.0, 3.0]

    Decisions stay as they are, and so do errors and rates; losses, confidence and calibration change. `deliver` returns
    a module that takes points and their groups; `train` leaves the model as it is and shows the curves of that module.

    `attribute` says which attribute a group has, and every attribute gets one temperature (default: every group its
    own). Groups that contain the label need it: the label of a new point is not known.

    Groups must be known when the model is used.

    Args:
        attribute: Which attribute each group has; each gets one temperature. None: every group its own.
    """

    by_group = True
    logits = True
    cannot = "change a decision: only confidence"

    attribute: Mapping[Hashable, Hashable] | None = None

    def check(self, data: Any) -> None:
        self._groups(data)

    def answers(self, data: Any) -> tuple[Hashable, ...]:
        return tuple(self._groups(data).places)

    def _groups(self, data: Any) -> FittedGroups:
        found = FittedGroups.of(self.attribute, data)
        found.check_both_labels(data.y, "GroupTemperature")
        return found

    def deliver(self, model: Any, data: Any) -> Any:
        from tiltmeter.interventions.shared.by_group import GroupScores

        groups = self._groups(data)
        scores = held_out_scores(model, data, "GroupTemperature")
        scale = [
            _scale(scores[own], data.y[own]) for own in (groups.codes == code for code in range(len(groups.names)))
        ]
        return GroupScores(model, tuple(groups.places), groups.by_group(scale), [0.0] * len(groups.places))


def _scale(scores: np.ndarray, y: np.ndarray) -> float:
    """The factor s that minimises the mean of -log p of s * scores, which is convex in s."""
    from scipy.optimize import brentq
    from scipy.special import expit, softmax

    if scores.ndim == 1:
        margins = np.where(y == y.max(), scores, -scores)

        def slope(log_scale: float) -> float:
            return float(-(margins * expit(-np.exp(log_scale) * margins)).mean())
    else:
        own = scores[np.arange(len(y)), y.astype(int)]

        def slope(log_scale: float) -> float:
            p = softmax(np.exp(log_scale) * scores, axis=1)
            return float(((p * scores).sum(1) - own).mean())

    low, high = -np.log(LARGEST), np.log(LARGEST)
    if slope(low) >= 0.0:  # scores that tell nothing, or the contrary
        return 1.0 / LARGEST
    if slope(high) <= 0.0:  # every point is right: the more confident, the better
        return LARGEST
    return float(np.exp(brentq(slope, low, high, xtol=1e-10)))
