"""Curricula: training points ordered by how hard a linear model finds them, and how many of them are in use."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

CURRICULA = ("none", "easy first", "hard first")
#: A curriculum begins with this share of the points; from the middle of training on, all are in use.
FIRST, UNTIL = 0.2, 0.5


def ranking(curriculum: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The points in their order: by the margin y f(x) of a ridge regression f, largest first if easy ones come first.

    >>> ranking("easy first", np.array([[1.0], [3.0], [-2.0]]), np.array([1.0, 1.0, -1.0])).tolist()
    [1, 2, 0]
    """
    if curriculum not in CURRICULA:
        raise KeyError(f"No curriculum {curriculum!r}. There are: {', '.join(CURRICULA)}.")
    if curriculum == "none":
        return np.arange(len(y))
    plain = np.column_stack([x, np.ones(len(y))])
    weight = np.linalg.solve(plain.T @ plain + 1e-3 * len(y) * np.eye(plain.shape[1]), plain.T @ y)
    margin = y * (plain @ weight)
    return np.argsort(-margin if curriculum == "easy first" else margin, kind="stable")


def pool(curriculum: str, points: int, steps: int) -> Tensor:
    """How many of the ordered points are in use at every step.

    >>> pool("easy first", 99, 5).tolist(), pool("none", 100, 2).tolist()
    ([20, 52, 84, 99, 99], [100, 100])
    """
    if curriculum == "none":
        return torch.full((steps,), points)
    share = FIRST + (1.0 - FIRST) * torch.arange(steps, dtype=torch.float64) / (UNTIL * steps)
    return (points * share.clamp(max=1.0)).ceil().long()
