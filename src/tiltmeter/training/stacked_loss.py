"""The loss of every run of a stack on its own batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from tiltmeter.data.example_weights import example_weights
from tiltmeter.data.grouped import GroupedData
from tiltmeter.interventions.term_law import TermLaw
from tiltmeter.measures.point_loss import PointLoss
from tiltmeter.training.steering import Steering


def stacked_scores(outputs: Tensor) -> Tensor:
    """Scores of shape (runs, points) or (runs, points, several)."""
    return outputs.squeeze(2) if outputs.ndim == 3 and outputs.shape[2] == 1 else outputs


def stacked_loss(
    loss: PointLoss,
    data: GroupedData,
    weights: Mapping[Any, float] | None,
    like: Tensor,
    steering: Steering | None = None,
    points: Tensor | None = None,
) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function from outputs (runs, batch, ...) and places (runs, batch) of the points to losses (runs,).

    `points` are all points, for laws that see them.
    """
    found = example_weights(data, weights)
    factors = None if found is None else torch.as_tensor(found, dtype=like.dtype, device=like.device)
    if factors is not None and loss.each is None:
        raise ValueError(f"Weights multiply the loss of each point, but {loss.definition} gives one number per batch.")
    y = data.tensors(like.dtype)[1].to(like.device)
    classes, numbers = y.long(), y.to(like.dtype)
    codes = torch.as_tensor(data.codes, dtype=torch.int64, device=like.device)
    laws = () if steering is None else steering.points
    seen = points if any(isinstance(law, TermLaw) and "inputs" in law.sees for law in laws) else None

    def losses(outputs: Tensor, places: Tensor) -> Tensor:
        scores = stacked_scores(outputs)
        labels = (classes if scores.ndim == 3 else numbers)[places]
        if loss.each is None:
            return torch.vmap(loss.whole)(scores, labels)
        each = loss.each(scores.flatten(0, 1), labels.flatten()).view(labels.shape)
        if steering is not None:
            heavy = None if factors is None else factors[places]
            x = None if seen is None else seen[places]
            return steering(each, codes[places], scores=scores, y=labels, weights=heavy, x=x)  # type: ignore[no-any-return]
        return (each if factors is None else each * factors[places]).mean(1)

    return losses
