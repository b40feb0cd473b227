"""LossSlope: derivatives of losses by the scores as formulas, where going through autograd costs more than the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tiltmeter.losses import CrossEntropy, Hinge, Logistic, Loss, Square

#: Numbers in two of the longest vectors of today's processors, in single precision.
TWO_VECTORS = 32


@dataclass(frozen=True)
class LossSlope:
    """`targets(y)` are the labels as `slope(scores, targets)` takes them, so that they are converted only once.

    The slope has the shape of the scores, and any number of dimensions before that of the points.
    """

    targets: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor, Tensor], Tensor]


def loss_slope(loss: Loss | CrossEntropy, several: bool, positive: float) -> LossSlope | None:
    """The slope of tiltmeter's own losses; None for a user's own class. `positive` is the label that counts as +1.

    >>> found = loss_slope(Logistic(), False, 1.0)
    >>> found.slope(torch.zeros(2), found.targets(torch.tensor([1.0, 0.0])))
    tensor([-0.5000,  0.5000])
    """
    kind = type(loss)
    if kind is CrossEntropy:
        return LossSlope(lambda y: y.long(), _cross_entropy)
    if several:
        return None
    if kind is Square:
        return LossSlope(lambda y: y, torch.sub)
    if kind in (Logistic, Hinge):
        slope = _logistic if kind is Logistic else _hinge
        return LossSlope(lambda y: (y == positive).to(y.dtype).mul_(2.0).sub_(1.0), slope)
    return None


def _logistic(scores: Tensor, signs: Tensor) -> Tensor:
    return _sigmoid(scores * -signs).mul_(-signs)


def _sigmoid(x: Tensor) -> Tensor:
    """Every row of numbers with the same rounding, however many rows there are.

    Torch takes numbers two vectors at a time, and what is left over one by one, with another rounding.
    """
    short = -x.shape[-1] % TWO_VECTORS
    return torch.sigmoid(x if not short else nn.functional.pad(x, (0, short)))[..., : x.shape[-1]]


def _hinge(scores: Tensor, signs: Tensor) -> Tensor:
    return torch.where(signs * scores <= 1.0, -signs, 0.0)


def _cross_entropy(scores: Tensor, classes: Tensor) -> Tensor:
    found = torch.softmax(scores, -1)
    own = classes.unsqueeze(-1).expand(*scores.shape[:-1], 1)
    return found.scatter_add_(-1, own, found.new_full((1,), -1.0).expand_as(own))
