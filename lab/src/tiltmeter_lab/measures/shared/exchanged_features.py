"""Exchanged: points whose component in a subspace comes from other points, and how well a model does on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tiltmeter.measures.snapshot import Snapshot


@dataclass(frozen=True)
class Subspace:
    """Some coordinates of the flattened points (`mask`), or the span of orthonormal `rows` (k, d)."""

    mask: Tensor | None = None
    rows: Tensor | None = None

    def exchanged(self, x: Tensor, other: Tensor) -> Tensor:
        """`x` with its component in this subspace replaced by that of `other`; the joint distribution of the component
        is kept.
        """
        if self.mask is not None:
            mask = self.mask.reshape(x.shape[1:]).to(x.device)
            return torch.where(mask, other, x)
        assert self.rows is not None
        if not x.is_floating_point():
            raise TypeError(f"Tokens have coordinates but no directions: name coordinates. Found x of type {x.dtype}.")
        rows = self.rows.to(x.device, x.dtype)
        away = (other - x).flatten(1)
        return x + ((away @ rows.T) @ rows).reshape(x.shape)


def permutation(points: int, seed: int) -> Tensor:
    """One permutation of the rows, for all coordinates of a set."""
    if points < 2:
        raise ValueError(f"At least two points are needed to exchange features. Found {points}.")
    return torch.as_tensor(np.random.default_rng(seed).permutation(points))


@dataclass(frozen=True)
class Kept:
    """Performance on changed points: accuracy and its chance level; for two labels also a score that ranks them."""

    accuracy: float
    chance: float
    ranking: np.ndarray | None


def kept(snapshot: Snapshot, x: Tensor, places: np.ndarray | None = None) -> Kept:
    """Evaluate the model on `x`, which replaces the points of the snapshot (those at `places`), with their labels."""
    chosen = np.arange(len(snapshot.data)) if places is None else places
    seen, y = snapshot.model, snapshot.data.y[chosen]
    mass = np.ones(len(y)) if snapshot.data.weights is None else snapshot.data.weights[chosen]
    score = seen.scores(x)
    decision = seen.decide(score)
    right = float(np.average(decision == y, weights=mass))
    return Kept(right, chance(y, decision, mass), ranking(score) if snapshot.task.binary else None)


def ranking(score: Tensor) -> np.ndarray:
    """One number per point that is larger for the second of two labels: the score, or the difference of two scores."""
    values = score.double().cpu().numpy()
    return np.asarray(values[:, 0] if values.shape[1] == 1 else values[:, 1] - values[:, 0])


def chance(y: np.ndarray, decision: np.ndarray, mass: np.ndarray) -> float:
    """The accuracy of random decisions, independent of the label, that are as frequent as these.

    >>> chance(np.array([0, 0, 1, 1]), np.array([1, 1, 1, 1]), np.ones(4))
    0.5
    """
    total = mass.sum()
    return float(sum(mass[y == v].sum() * mass[decision == v].sum() for v in np.unique(y)) / total**2)


def auc(score: np.ndarray, positive: np.ndarray, mass: np.ndarray) -> float:
    """Share of pairs of a positive and a negative point that the score ranks correctly; ties count one half.

    >>> auc(np.array([0.1, 0.4, 0.4, 0.9]), np.array([False, False, True, True]), np.ones(4))
    0.875
    """
    if positive.all() or not positive.any():
        raise ValueError("An AUC compares two labels. Found points of one only.")
    _, places = np.unique(score, return_inverse=True)
    up, down = (np.bincount(places, mass * part) for part in (positive, ~positive))
    return float((up * (np.cumsum(down) - down / 2)).sum() / (up.sum() * down.sum()))
