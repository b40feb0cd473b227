"""Scorers: choose among models by their groups, in scikit-learn's GridSearchCV and cross_val_score.

>>> import numpy as np, pandas as pd
>>> from sklearn.linear_model import LogisticRegression
>>> from sklearn.model_selection import GridSearchCV
>>> rng = np.random.default_rng(0)
>>> table = pd.DataFrame({"age": rng.normal(size=600), "sex": rng.integers(0, 2, 600)})
>>> label = (table.age * np.where(table.sex == 1, 1.0, -0.2) > 0).astype(int)
>>> search = GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}, scoring=worst_group_error("sex"))
>>> round(float(-search.fit(table, label).best_score_), 2)  # the error of the worst-off group
0.52

A scorer finds the groups in a column of the points that are scored, so that folds cannot mix them up. Scores are
negative where less is better, as scikit-learn wants them. With `level`, the score is not the value itself but its
limit on the wrong side, at this error rate over all groups together: a model is not chosen for the luck of a small
group. Scores were used to choose: judge the chosen model on points that had no part in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv

from tiltmeter.arguments import checked_share
from tiltmeter.data.labels import coded

__all__ = ["GroupScorer", "error_gap", "fpr_gap", "selection_gap", "tpr_gap", "worst_group_error"]

#: Groups with fewer points than this, in the rate that is asked for, are left out of a score.
FEWEST = 20


@dataclass(frozen=True)
class GroupScorer:
    """A function of (estimator, X, y), as `scoring=` takes it.

    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = np.repeat([[0], [1]], 100, axis=0), np.array([1] * 90 + [0] * 10 + [1] * 60 + [0] * 40)
    >>> right = lambda y, decided: (np.full(len(y), True), decided == y)  # all count; a right decision happened
    >>> lowest = lambda events, points, level: float((events / points).min())
    >>> GroupScorer(0, right, lowest)(DummyClassifier().fit(X, y), X, y)  # accuracy of the worst group
    0.6

    Args:
        group: Column of X with the groups: a name, several names for intersections, or a number if X is an array.
        rate: Gives, of labels and decisions, which points count and for which of them the event happened.
        worst: Makes one number of the events and points of all groups, in which more is better.
        level: Score the limit at this error rate instead of the value, so that few points do not look good; None: the
            value.
    """

    group: Any
    rate: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
    worst: Callable[[np.ndarray, np.ndarray, float | None], float]
    level: float | None = None

    def __post_init__(self) -> None:
        if self.level is not None:
            checked_share("level", self.level)

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        counted, happened = self.rate(np.asarray(y), np.asarray(estimator.predict(X)).reshape(len(X)))
        groups, codes = coded(_members(X, self.group))
        points = np.bincount(codes[counted], minlength=len(groups)).astype(float)
        events = np.bincount(codes[counted & happened], minlength=len(groups)).astype(float)
        judged = points >= FEWEST
        if not judged.any():
            raise ValueError(f"A score needs a group with at least {FEWEST} points that count. Found none.")
        return self.worst(events[judged], points[judged], self.level)


def worst_group_error(group: Any, *, level: float | None = None) -> GroupScorer:
    """Minus the largest error rate of any group.

    >>> from sklearn.dummy import DummyClassifier
    >>> X = np.repeat([[0], [1]], 50, axis=0)
    >>> y = np.array([1] * 45 + [0] * 5 + [1] * 30 + [0] * 20)
    >>> round(worst_group_error(0)(DummyClassifier().fit(X, y), X, y), 2)
    -0.4

    Args:
        group: Column of X with the groups: a name, several names for intersections, or a number if X is an array.
        level: Score the limit at this error rate instead of the value, so that few points do not look good; None: the
            value.
    """
    return GroupScorer(group, _wrong, _largest, level)


def error_gap(group: Any, *, level: float | None = None) -> GroupScorer:
    """Minus the difference between the largest and the smallest error rate; with `level`, the most that it could be.

    >>> from sklearn.dummy import DummyClassifier
    >>> X = np.repeat([[0], [1]], 50, axis=0)
    >>> y = np.array([1] * 45 + [0] * 5 + [1] * 30 + [0] * 20)
    >>> round(error_gap(0)(DummyClassifier().fit(X, y), X, y), 2)
    -0.3

    Args:
        group: Column of X with the groups: a name, several names for intersections, or a number if X is an array.
        level: Score the limit at this error rate instead of the value, so that few points do not look good; None: the
            value.
    """
    return GroupScorer(group, _wrong, _gap, level)


def tpr_gap(group: Any, *, positive: Any = 1, level: float | None = None) -> GroupScorer:
    """Minus the largest difference in true positive rates (equal opportunity).

    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(0, 2, 2000)
    >>> y = rng.binomial(1, np.where(sex == 1, 0.6, 0.4))
    >>> X = np.stack([sex, y + rng.normal(size=2000)], axis=1)  # the groups are in column 0
    >>> round(tpr_gap(0)(LogisticRegression().fit(X, y), X, y), 2)
    -0.35

    Args:
        group: Column of X with the groups: a name, several names for intersections, or a number if X is an array.
        positive: Label that counts as a yes.
        level: Score the limit at this error rate instead of the value, so that few points do not look good; None: the
            value.
    """
    return GroupScorer(group, _Among(positive, True), _gap, level)


def fpr_gap(group: Any, *, positive: Any = 1, level: float | None = None) -> GroupScorer:
    """Minus the largest difference in false positive rates.

    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(0, 2, 2000)
    >>> y = rng.binomial(1, np.where(sex == 1, 0.6, 0.4))
    >>> X = np.stack([sex, y + rng.normal(size=2000)], axis=1)  # the groups are in column 0
    >>> round(fpr_gap(0)(LogisticRegression().fit(X, y), X, y), 2)
    -0.27

    Args:
        group: Column of X with the groups: a name, several names for intersections, or a number if X is an array.
        positive: Label that counts as a yes.
        level: Score the limit at this error rate instead of the value, so that few points do not look good; None: the
            value.
    """
    return GroupScorer(group, _Among(positive, False), _gap, level)


def selection_gap(group: Any, *, positive: Any = 1, level: float | None = None) -> GroupScorer:
    """Minus the largest difference in selection rates (demographic parity).

    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(0, 2, 2000)
    >>> y = rng.binomial(1, np.where(sex == 1, 0.6, 0.4))
    >>> X = np.stack([sex, y + rng.normal(size=2000)], axis=1)  # the groups are in column 0
    >>> round(selection_gap(0)(LogisticRegression().fit(X, y), X, y), 2)
    -0.4

    Args:
        group: Column of X with the groups: a name, several names for intersections, or a number if X is an array.
        positive: Label that counts as a yes.
        level: Score the limit at this error rate instead of the value, so that few points do not look good; None: the
            value.
    """
    return GroupScorer(group, _Among(positive, None), _gap, level)


def _wrong(y: np.ndarray, decided: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.ones(len(y), dtype=bool), y != decided


@dataclass(frozen=True)
class _Among:
    """Positive decisions among the points with the positive label, with another, or (None) among all."""

    positive: Any
    label: bool | None

    def __call__(self, y: np.ndarray, decided: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        counted = np.ones(len(y), dtype=bool) if self.label is None else (y == self.positive) == self.label
        return counted, decided == self.positive


def _largest(events: np.ndarray, points: np.ndarray, level: float | None) -> float:
    return -float(_limits(events, points, level)[1].max())


def _gap(events: np.ndarray, points: np.ndarray, level: float | None) -> float:
    low, high = _limits(events, points, level)
    # The widest pair of two different groups: one at its upper limit, another at its lower one.
    widest = high[:, None] - low[None, :]
    np.fill_diagonal(widest, 0.0)
    return -float(max(widest.max(), 0.0))


def _limits(events: np.ndarray, points: np.ndarray, level: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Clopper-Pearson limits that hold for all groups together (Bonferroni); the rate itself without a level.

    >>> low, high = _limits(np.array([0.0, 5.0]), np.array([20.0, 50.0]), 0.05)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.028], [0.197, 0.236])
    """
    if level is None:
        return events / points, events / points
    tail = level / (2 * len(points))
    with np.errstate(all="ignore"):
        low = np.where(events > 0, betaincinv(np.maximum(events, 1), points - events + 1, tail), 0.0)
        rest = np.maximum(points - events, 1)
        high = np.where(events < points, betaincinv(events + 1, rest, 1 - tail), 1.0)
    return low, high


def _members(points: Any, group: Any) -> Any:
    """The group of every point: the column of a table, or the column with this number of an array."""
    if hasattr(points, "columns"):
        names = list(group) if isinstance(group, list) else [group]
        missing = [name for name in names if name not in list(points.columns)]
        if missing:
            listed = ", ".join(map(repr, points.columns))
            raise KeyError(f"`group`: no column {missing[0]!r}. There are: {listed}.")
        columns = [np.asarray(points[name]).tolist() for name in names]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    if isinstance(group, bool) or not isinstance(group, int):
        raise TypeError(
            f"`group` should be the number of a column, since the points are an array. Found group = {group!r}."
        )
    return np.asarray(points)[:, group].tolist()
