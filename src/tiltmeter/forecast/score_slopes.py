"""Score slopes: derivatives of the losses of several runs by their scores, by formulas instead of autograd."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from tiltmeter.data.example_weights import example_weights
from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.point_loss import PointLoss

#: Derivatives of the loss of every run by its scores (runs, points, outputs), for points at places (runs, points).
ScoreSlopes = Callable[[Tensor, Tensor], Tensor]


def score_slopes(
    loss: PointLoss, train: GroupedData, weights: Mapping[Any, float] | None, like: Tensor
) -> ScoreSlopes | None:
    """The derivatives of the losses that `stacked_loss` gives without laws; None where the formula is not known."""
    known = loss.slope
    if known is None:
        return None
    y = known.targets(train.tensors(like.dtype)[1].to(like.device, like.dtype))
    factors = example_weights(train, weights)
    heavy = None if factors is None else torch.as_tensor(factors, dtype=like.dtype, device=like.device)

    def slopes(scores: Tensor, places: Tensor) -> Tensor:
        one = scores.shape[2] == 1
        found = known.slope(scores[..., 0] if one else scores, y[places])
        found = found.unsqueeze(2) if one else found
        if heavy is not None:
            found = found * heavy[places].unsqueeze(2)
        return found.div_(scores.shape[1])

    return slopes
