"""roc: how well a trained model ranks the positives of a group above its negatives, and where its threshold lies."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from tiltmeter.analysis.last_look import LastLook
from tiltmeter.analysis.simultaneous.two_way import FEWEST_SEEDS

#: With fewer positives or negatives than this, a group has no ranking to speak of.
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


def roc(look: LastLook, scores: np.ndarray) -> tuple[GroupRoc, ...]:
    """Every group with enough points of both labels, from scores (seeds, points).

    >>> from tiltmeter.analysis.last_look import LastLook
    >>> positive = np.tile([False, True], 20)
    >>> scores = np.where(positive, 0.6, 0.4)[None]
    >>> look = LastLook(("a",), np.zeros(40, dtype=int), positive, scores > 0.5, scores, 10.0)
    >>> found = roc(look, scores)[0]
    >>> found.auc, found.at, found.tpr(np.array([0.0, 0.5])).tolist()
    (1.0, (0.0, 1.0), [1.0, 1.0])
    """
    found = []
    for place, group in enumerate(look.groups):
        parts = [scores[:, (look.codes == place) & (look.positive == label)] for label in (True, False)]
        if min(part.shape[1] for part in parts) < FEWEST:
            continue
        positives, negatives = parts
        at = [
            float(look.decided[:, (look.codes == place) & (look.positive == label)].mean()) for label in (False, True)
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
