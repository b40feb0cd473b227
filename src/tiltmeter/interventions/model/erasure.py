"""Erasure: the last features hold no linear trace of an attribute, and the last layer is fitted anew."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.interventions.kinds import ModelIntervention
from tiltmeter.interventions.shared.by_group import attribute_codes
from tiltmeter.interventions.shared.last_features import last_features

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
