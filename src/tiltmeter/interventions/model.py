"""Model interventions: what is changed in the model that is delivered."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tiltmeter.interventions.kinds import ModelIntervention
from tiltmeter.interventions.shared.by_group import FittedGroups, attribute_codes, held_out_scores
from tiltmeter.interventions.shared.last_features import last_features


@dataclass(frozen=True)
class DFR(ModelIntervention):
    """The mean of `fits` logistic regressions on the last features, deep feature reweighting, Kirichenko et al. (2023).

    >>> import numpy as np, torch, tiltmeter as tm
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(300, 4)).astype("float32")
    >>> data = tm.GroupedData(x, (x[:, 0] > 0).astype(int), np.where(x[:, 1] > 0.8, "rare", "common"))
    >>> fitted = DFR().deliver(torch.nn.Linear(4, 1), data)
    >>> bool(((fitted(torch.tensor(x))[:, 0] > 0).numpy() == data.y).mean() > 0.95)
    True

    Each fit sees as many points of every group and label as the smallest such cell has. Features are standardised, and
    the scaling is folded back into the layer. Curves of a training with it show what the features could do if training
    stopped there.

    Its points should be held out: training points are fitted too well to show which features hold elsewhere.

    Args:
        fits: Logistic regressions that are averaged.
        strength: Inverse of the ridge, scikit-learn's C.
        seed: Seed of the random draws.
    """

    title = "the last layer fitted anew on points balanced over groups"
    cannot = "repair features that were never learned"
    logits = True

    fits: int = 10
    strength: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.fits, bool) or self.fits != int(self.fits) or self.fits < 1:
            raise ValueError(f"`fits` should be a positive whole number. Found fits = {self.fits!r}.")
        if isinstance(self.strength, bool) or not 0.0 < self.strength < np.inf:
            raise ValueError(f"`strength` should be a positive number. Found strength = {self.strength!r}.")

    def deliver(self, model: Any, data: Any) -> Any:
        import torch

        delivered = copy.deepcopy(model)
        layer, features = last_features(delivered, data, "DFR")
        rows, offsets = _mean_fit(features, data, layer.out_features, layer.bias is not None, self)
        with torch.no_grad():
            layer.weight.copy_(torch.as_tensor(rows))
            if layer.bias is not None:
                layer.bias.copy_(torch.as_tensor(offsets))
        return delivered


def _mean_fit(features: np.ndarray, data: Any, outputs: int, bias: bool, law: DFR) -> tuple[np.ndarray, np.ndarray]:
    """Rows and offsets of the layer: the mean over balanced subsets."""
    from sklearn.linear_model import LogisticRegression

    labels, wanted = np.unique(data.y, return_inverse=True)
    expected = max(outputs, 2)
    if len(labels) != expected:
        raise ValueError(f"DFR needs points of all {expected} labels that the model tells apart. Found {len(labels)}.")
    cells = np.unique(data.codes * len(labels) + wanted, return_inverse=True)[1]
    least = int(np.bincount(cells).min())
    middle = features.mean(0) if bias else np.zeros(features.shape[1])
    width = features.std(0)
    width = np.where(width > 0.0, width, 1.0)
    scaled = (features - middle) / width
    rng = np.random.default_rng(law.seed)
    rows, offsets = np.zeros((outputs, features.shape[1])), np.zeros(outputs)
    for _ in range(law.fits):
        order = rng.permutation(len(cells))
        ranks = _rank_in_cell(cells[order])
        chosen = order[ranks < least]
        fit = LogisticRegression(C=law.strength, fit_intercept=bias, max_iter=1000)
        fit.fit(scaled[chosen], wanted[chosen])
        found, offset = fit.coef_, np.broadcast_to(fit.intercept_, len(fit.coef_))
        if outputs == 2:  # scikit-learn gives the difference of the two
            found, offset = np.concatenate([-found, found]) / 2.0, np.concatenate([-offset, offset]) / 2.0
        rows += found / law.fits
        offsets += offset / law.fits
    rows = rows / width
    return rows, offsets - rows @ middle


def _rank_in_cell(cells: np.ndarray) -> np.ndarray:
    """How many entries of the same cell stand before each."""
    order = np.argsort(cells, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(cells))])[:-1]
    ranks = np.empty(len(cells), dtype=np.int64)
    ranks[order] = np.arange(len(cells)) - starts[cells[order]]
    return ranks


#: Directions whose variance is below this part of the largest are empty.
EMPTY = 1e-10


@dataclass(frozen=True, eq=False)
class Eraser:
    """x -> x - shape (x - mean): an affine map of features."""

    mean: np.ndarray
    shape: np.ndarray

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(x - (x - self.mean) @ self.shape.T)


@dataclass(frozen=True)
class Erasure(ModelIntervention):
    """The least change of features after which no linear model finds an attribute: LEACE, Belrose et al. (2023).

    >>> rng = np.random.default_rng(0)
    >>> x, z = rng.normal(size=(500, 3)), rng.integers(0, 2, 500)
    >>> x[:, 0] += 2.0 * z
    >>> erased = eraser(x, z, np.ones(500))(x)
    >>> bool(np.abs(np.cov(erased.T, z)[:3, 3]).max() < 1e-12)
    True

    Covariances weigh every pair of label and group alike, and so does the new last layer, a logistic regression on the
    erased features. Without `balanced`, the direction of an attribute that goes along with the label takes the label
    with it, and the bias is *reversed*.

    What is erased is linear: a network after these features could still find the attribute.

    Args:
        attribute: Which attribute each group has; None: the group itself.
        balanced: Whether every pair of label and group weighs alike; otherwise the label may be erased too.
        strength: Inverse of the ridge of the new last layer, scikit-learn's C.
    """

    title = "the last features hold no linear trace of an attribute, and the last layer is fitted anew"
    cannot = "erase what only a nonlinear model can read"
    logits = True

    attribute: Mapping[Hashable, Hashable] | None = None
    balanced: bool = True
    strength: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.balanced, bool):
            raise TypeError(f"`balanced` should be True or False. Found balanced = {self.balanced!r}.")
        if isinstance(self.strength, bool) or not 0.0 < self.strength < np.inf:
            raise ValueError(f"`strength` should be a positive number. Found strength = {self.strength!r}.")

    def deliver(self, model: Any, data: Any) -> Any:
        import torch

        delivered = copy.deepcopy(model)
        layer, features = last_features(delivered, data, "Erasure")
        weights = _cell_weights(data) if self.balanced else np.ones(len(data))
        erase = eraser(features, self._attributes(data), weights)
        rows, offsets = _logistic(erase(features), data.y, weights, layer.out_features, layer.bias is not None, self)
        # Folded into the layer: rows (x - shape (x - mean)) + offsets.
        with torch.no_grad():
            layer.weight.copy_(torch.as_tensor(rows - rows @ erase.shape))
            if layer.bias is not None:
                layer.bias.copy_(torch.as_tensor(offsets + rows @ erase.shape @ erase.mean))
        return delivered

    def _attributes(self, data: Any) -> np.ndarray:
        return np.asarray(attribute_codes(self.attribute, data.groups)[data.codes])


def eraser(x: np.ndarray, z: np.ndarray, weights: np.ndarray) -> Eraser:
    """The least-squares eraser of codes z from features x, under a distribution that weighs points.

    With W = Sxx^(-1/2) and U an orthonormal basis of W Sxz: x - W^-1 U U' W (x - mean).
    """
    share = weights / weights.sum()
    onehot = (z[:, None] == np.unique(z)).astype(float)
    mean = share @ x
    centred, classes = x - mean, onehot - share @ onehot
    values, vectors = np.linalg.eigh((centred * share[:, None]).T @ centred)
    kept = values > EMPTY * max(values.max(), np.finfo(float).tiny)
    roots, basis = np.sqrt(values[kept]), vectors[:, kept]
    whiten, colour = (basis / roots) @ basis.T, (basis * roots) @ basis.T
    left, sizes, _ = np.linalg.svd(whiten @ (centred * share[:, None]).T @ classes, full_matrices=False)
    found = left[:, sizes > EMPTY * max(sizes.max(), 1.0)]
    return Eraser(mean, colour @ found @ found.T @ whiten)


def _cell_weights(data: Any) -> np.ndarray:
    """Every pair of label and group counts alike."""
    labels, wanted = np.unique(data.y, return_inverse=True)
    cells = np.unique(data.codes * len(labels) + wanted, return_inverse=True)[1]
    return np.asarray(1.0 / np.bincount(cells)[cells])


def _logistic(
    x: np.ndarray, y: np.ndarray, weights: np.ndarray, outputs: int, bias: bool, law: Erasure
) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.linear_model import LogisticRegression

    count, expected = len(np.unique(y)), max(outputs, 2)
    if count != expected:
        raise ValueError(f"Erasure needs points of all {expected} labels that the model tells apart. Found {count}.")
    width = x.std(0)
    width = np.where(width > 1e-6 * max(width.max(), np.finfo(float).tiny), width, 1.0)
    fit = LogisticRegression(C=law.strength, fit_intercept=bias, max_iter=1000)
    fit.fit(x / width, y, sample_weight=weights * len(weights) / weights.sum())
    rows, offsets = fit.coef_ / width, np.broadcast_to(fit.intercept_, len(fit.coef_))
    if outputs == 2:  # scikit-learn gives the difference of the two
        rows, offsets = np.concatenate([-rows, rows]) / 2.0, np.concatenate([-offsets, offsets]) / 2.0
    return rows, offsets


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
    title = "the confidence of every group set right on held-out points"
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
    title = "a threshold for every group, chosen on held-out points so that a rate is equal at the least error"
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
