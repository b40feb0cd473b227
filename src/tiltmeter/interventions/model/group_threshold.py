"""GroupThreshold: a threshold for every group, chosen on held-out points so that a rate is equal at the least error."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tiltmeter.interventions.kinds import ModelIntervention
from tiltmeter.interventions.shared.by_group import FittedGroups, held_out_scores


@dataclass(frozen=True)
class GroupThreshold(ModelIntervention):
    """score - c_g, with thresholds at which all groups have one rate on held-out points: Hardt et al. (2016).

    >>> import torch, tiltmeter as tm
    >>> rng = np.random.default_rng(0)
    >>> late = rng.random(2000) < 0.5
    >>> y = rng.integers(0, 2, 2000)
    >>> x = (rng.normal(size=2000) + 2 * y - 1 - 1.5 * late)[:, None].astype("float32")
    >>> model = torch.nn.Linear(1, 1)
    >>> with torch.no_grad():
    ...     _ = model.weight.fill_(1.0), model.bias.zero_()
    >>> fitted = GroupThreshold("tpr").deliver(model, tm.GroupedData(x, y, np.where(late, "late", "early")))
    >>> dict(zip(fitted.groups, fitted.shift.round(decimals=1).tolist()))
    {'early': 0.1, 'late': -1.3}

    The rate that all get lies between the lowest and the highest that the groups have at one threshold; of those it is
    the one with the fewest wrong decisions. Thresholds lie between two held-out scores, so rates are equal up to one
    point of a group. `deliver` returns a module that takes points and their groups; `train` leaves the model as it is
    and shows the curves of that module, whose losses are those of the shifted scores.

    Groups that contain the label, as pairs of label and attribute do, need it: the label of a new point is not known.

    Groups must be known when the model is used. Rates of other points are equal up to their sampling error only, and
    one equal rate says nothing about the others.

    Args:
        equal: Rate that is made equal: "positive_rate", "tpr" or "fpr"; "error": each group its own smallest error
            instead.
        attribute: Which attribute each group has; each gets one threshold. None: every group its own.
    """

    by_group = True
    logits = True
    cannot = "rank points of a group in another order: only its threshold moves"

    equal: Literal["positive_rate", "tpr", "fpr", "error"] = "positive_rate"
    attribute: Mapping[Hashable, Hashable] | None = None

    def __post_init__(self) -> None:
        if self.equal not in ("positive_rate", "tpr", "fpr", "error"):
            known = '"positive_rate", "tpr", "fpr" or "error"'
            raise ValueError(f"`equal` should be {known}. Found equal = {self.equal!r}.")

    def check(self, data: Any) -> None:
        self._groups(data)

    def answers(self, data: Any) -> tuple[Hashable, ...]:
        return tuple(self._groups(data).places)

    def _groups(self, data: Any) -> FittedGroups:
        found = FittedGroups.of(self.attribute, data)
        found.check_both_labels(data.y, "GroupThreshold")
        return found

    def deliver(self, model: Any, data: Any) -> Any:
        from tiltmeter.interventions.shared.by_group import GroupScores

        groups = self._groups(data)
        scores = held_out_scores(model, data, "GroupThreshold")
        if scores.ndim != 1:
            raise ValueError(f"GroupThreshold decides between two labels by one score. Found {scores.shape[1]} scores.")
        positive = data.y == data.y.max()
        counted = {"tpr": positive, "fpr": ~positive}.get(self.equal, np.ones(len(data), dtype=bool))
        members = [groups.codes == code for code in range(len(groups.names))]
        if self.equal == "error":
            shift = [_least_error(scores[own], positive[own]) for own in members]
        else:
            shift = _one_rate([(scores[own], positive[own], counted[own]) for own in members])
        return GroupScores(model, tuple(groups.places), [1.0] * len(groups.places), groups.by_group(shift))


def _one_rate(groups: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> list[float]:
    """Thresholds of groups (scores, positive, counted) at one rate of the counted, with the least error."""
    ranked = [np.sort(scores[counted])[::-1] for scores, _, counted in groups]
    now = [float((own > 0).mean()) for own in ranked]
    rates = np.unique(np.concatenate([now, *(np.arange(len(own) + 1) / len(own) for own in ranked)]))
    rates = rates[(rates >= min(now)) & (rates <= max(now))]
    thresholds = [[_between(own, round(rate * len(own))) for rate in rates] for own in ranked]
    errors, reached = np.zeros(len(rates)), []
    for (scores, positive, _), own, chosen in zip(groups, ranked, thresholds, strict=True):
        yes, no = np.sort(scores[positive]), np.sort(scores[~positive])
        errors += np.searchsorted(yes, chosen, "right") + len(no) - np.searchsorted(no, chosen, "right")
        reached.append(1.0 - np.searchsorted(own[::-1], chosen, "right") / len(own))
    gaps = np.ptp(reached, axis=0)
    one_point = 1.0 / min(map(len, ranked))
    errors[gaps > max(one_point, gaps.min()) + 1e-12] = np.inf  # equal scores may keep groups apart
    best = int(errors.argmin())
    return [chosen[best] for chosen in thresholds]


def _least_error(scores: np.ndarray, positive: np.ndarray) -> float:
    """The threshold of the fewest errors; of several the one nearest to 0."""
    order = np.argsort(-scores, kind="stable")
    ranked, right = scores[order], positive[order]
    errors = np.concatenate([[0], np.cumsum(~right)]) + right.sum() - np.concatenate([[0], np.cumsum(right)])
    errors = errors.astype(float)
    errors[1:-1][ranked[1:] == ranked[:-1]] = np.inf  # no threshold lies between equal scores
    best = np.flatnonzero(errors == errors.min())
    return min((_between(ranked, int(number)) for number in best), key=abs)


def _between(ranked: np.ndarray, number: int) -> float:
    """A threshold with the `number` largest scores above it; 0 where that does."""
    low = ranked[number] if number < len(ranked) else -np.inf
    high = ranked[number - 1] if number else np.inf
    if low <= 0.0 < high:
        return 0.0
    if np.isinf(low):
        return float(high) - 1.0
    return float(low) + 1.0 if np.isinf(high) else float(low + high) / 2.0
