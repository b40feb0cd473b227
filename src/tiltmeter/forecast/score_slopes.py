"""Score slopes: derivatives of the losses of several runs by their scores, by formulas instead of autograd."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tiltmeter.data.example_weights import example_weights
from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.point_loss import PointLoss

#: Derivatives of the loss of every run by its scores (runs, points, outputs), for points at places (runs, points).
ScoreSlopes = Callable[[Tensor, Tensor], Tensor]


def score_slopes(
    loss: PointLoss, train: GroupedData, weights: Sequence[Mapping[Any, float] | None], like: Tensor
) -> ScoreSlopes | None:
    """The derivatives of the losses that `stacked_loss` gives without laws; None where the formula is not known.

    `weights` are those of every run, or one for all.
    """
    known = loss.slope
    if known is None:
        return None
    y = known.targets(train.tensors(like.dtype)[1].to(like.device, like.dtype))
    heavy = _factors(train, weights, like)
    runs = torch.arange(len(weights), device=like.device)[:, None]

    def slopes(scores: Tensor, places: Tensor) -> Tensor:
        one = scores.shape[2] == 1
        goals = y.index_select(0, places.flatten()).view(places.shape)  # several times as fast as y[places]
        found = known.slope(scores[..., 0] if one else scores, goals)
        found = found.unsqueeze(2) if one else found
        if heavy is not None:
            found = found * heavy[runs, places].unsqueeze(2)
        return found.div_(scores.shape[1])

    return slopes


def _factors(train: GroupedData, weights: Sequence[Mapping[Any, float] | None], like: Tensor) -> Tensor | None:
    """The factors of all points, (runs or 1, points); None if all are 1."""
    each = [example_weights(train, one) for one in weights]
    if all(one is None for one in each):
        return None
    rows = np.stack([np.ones(len(train)) if one is None else one for one in each])
    return torch.as_tensor(rows, dtype=like.dtype, device=like.device)
