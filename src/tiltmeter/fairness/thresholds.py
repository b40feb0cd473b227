"""own_threshold: the threshold at which one group would get the rate of another, and what that costs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tiltmeter.fairness.last_evaluation import LastEvaluation, last_evaluation, last_probabilities
from tiltmeter.leaders.seed_bands import FEWEST_SEEDS
from tiltmeter.record.trajectory import Trajectory

#: With fewer positives or negatives than this, a group has no ranking to speak of, and chooses no threshold.
FEWEST = 10


@dataclass(frozen=True, eq=False)
class GroupRoc:
    """One group: `auc` is the probability that a positive of it has a higher score than a negative of it.

    `error` is its standard error (DeLong, DeLong and Clarke-Pearson, 1988), from five seeds on with their scatter. `at`
    is the pair (fpr, tpr) of the threshold in use. Several seeds are averaged. Whether one threshold treats groups
    alike is another question: two groups may be ranked equally well and still be cut at different places.
    """

    group: Hashable
    auc: float
    error: float
    at: tuple[float, float]
    positives: np.ndarray
    negatives: np.ndarray

    def tpr(self, fpr: np.ndarray) -> np.ndarray:
        """The share of positives found by the threshold that wrongly says yes to these shares, mean over seeds."""
        found = []
        for above, below in zip(self.positives, self.negatives, strict=True):
            # From the highest threshold to the lowest; equal scores are passed together.
            levels = np.unique(np.concatenate([above, below]))[::-1]
            x, y = (1.0 - np.searchsorted(np.sort(one), levels) / len(one) for one in (below, above))
            x, y = np.append(0.0, x), np.append(0.0, y)
            highest = np.append(np.diff(x) > 0, True)
            found.append(np.interp(fpr, x[highest], y[highest]))
        return np.asarray(np.mean(found, axis=0))


def roc(evaluation: LastEvaluation, scores: np.ndarray) -> tuple[GroupRoc, ...]:
    """Every group with enough points of both labels, from scores (seeds, points).

    >>> from tiltmeter.fairness.last_evaluation import LastEvaluation
    >>> positive = np.tile([False, True], 20)
    >>> scores = np.where(positive, 0.6, 0.4)[None]
    >>> evaluation = LastEvaluation(("a",), np.zeros(40, dtype=int), positive, scores > 0.5, scores, 10.0)
    >>> found = roc(evaluation, scores)[0]
    >>> found.auc, found.at, found.tpr(np.array([0.0, 0.5])).tolist()
    (1.0, (0.0, 1.0), [1.0, 1.0])
    """
    found = []
    for place, group in enumerate(evaluation.groups):
        parts = [scores[:, (evaluation.codes == place) & (evaluation.positive == label)] for label in (True, False)]
        if min(part.shape[1] for part in parts) < FEWEST:
            continue
        positives, negatives = parts
        at = [
            float(evaluation.decided[:, (evaluation.codes == place) & (evaluation.positive == label)].mean())
            for label in (False, True)
        ]
        found.append(GroupRoc(group, *_auc(positives, negatives), (at[0], at[1]), positives, negatives))
    return tuple(found)


def _auc(positives: np.ndarray, negatives: np.ndarray) -> tuple[float, float]:
    """The area, mean over seeds, and its standard error from the placements of points among the other label."""
    pairs = list(zip(positives, negatives, strict=True))
    above = np.array([_below(one, other) for one, other in pairs])
    under = np.array([1.0 - _below(other, one) for one, other in pairs])
    seeds = len(above)
    variance = sum(part.mean(0).var(ddof=1) / part.shape[1] for part in (above, under))
    if seeds >= FEWEST_SEEDS:
        variance = variance + above.mean(1).var(ddof=1) / seeds
    return float(above.mean()), float(np.sqrt(variance))


def _below(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """For each value the share of `others` below it; equal ones count half."""
    ordered = np.sort(others)
    left, right = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    return np.asarray((left + right) / (2.0 * len(others)))


@dataclass(frozen=True)
class OwnThreshold:
    """Saying yes to `group` above `threshold` instead of 0.5 gives it the rate of `other`: `rate`, before `before`.

    `ppv` is the share of its yeses that would be right, `ppv_before` the one now.
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
    evaluation = last_evaluation(trajectory)
    chance = None if evaluation is None else last_probabilities(trajectory, evaluation)
    if evaluation is None or chance is None:
        return None
    counted = evaluation.positive == (curve == "tpr")
    mine, theirs = (evaluation.codes == evaluation.groups.index(one) for one in (group, other))
    if (mine & counted).sum() < FEWEST or (theirs & counted).sum() < FEWEST:
        return None
    wanted = float(evaluation.decided[:, theirs & counted].mean())
    threshold = float(np.quantile(chance[:, mine & counted], 1.0 - wanted))
    now, then = evaluation.decided[:, mine], chance[:, mine] > threshold
    before, rate = (float(part[:, counted[mine]].mean()) for part in (now, then))
    right = [_right(decided, evaluation.positive[mine]) for decided in (now, then)]
    return OwnThreshold(group, other, curve, threshold, before, rate, *right)


def _right(decided: np.ndarray, positive: np.ndarray) -> float:
    """The share of yeses that are right."""
    count = int(decided.sum())
    return float((decided & positive).sum() / count) if count else float("nan")
