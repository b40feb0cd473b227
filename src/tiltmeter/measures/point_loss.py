"""PointLoss: the loss of each point from a model's outputs, for tiltmeter's losses and for a user's own callable."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tiltmeter.losses import CrossEntropy, Hinge, Logistic, Loss, Square
from tiltmeter.measures.output_kind import cross_entropy_of_probabilities
from tiltmeter.measures.task import Link

Function = Callable[[Tensor, Tensor], Tensor]

_LINKS: dict[tuple[type, ...], Link] = {
    (nn.MSELoss, nn.L1Loss, nn.HuberLoss, nn.SmoothL1Loss): "linear",
    (nn.BCELoss,): "probability",
    (nn.BCEWithLogitsLoss, nn.SoftMarginLoss): "sigmoid",
    (nn.CrossEntropyLoss, nn.NLLLoss): "softmax",
}


@dataclass(frozen=True)
class PointLoss:
    """`each(scores, y)` gives one number per point (None if unknown), `whole(scores, y)` gives their mean.

    `of_probabilities` says that scores are probabilities and that their loss is `probability_loss`, as in a table of
    predictions.
    """

    definition: str
    link: Link
    each: Function | None
    whole: Function
    of_probabilities: bool = False


def point_loss(loss: Any, scores: Tensor, y: Tensor, labels: Sequence[float]) -> PointLoss:
    """The loss as it will be recorded, tried on a few points with these `scores` and `y`; `labels` lists all labels."""
    several = scores.ndim == 2
    if loss is None:
        loss = CrossEntropy() if several else Logistic() if len(labels) <= 2 else Square()
    if isinstance(loss, type):
        raise TypeError(f"`loss` should be a loss. Found the class {loss.__name__}: call it.")
    if isinstance(loss, (Loss, CrossEntropy)):
        return _own(loss, several, max(labels))
    if not callable(loss):
        raise TypeError(f"`loss` should be a loss, such as Square() or nn.MSELoss(). Found {type(loss).__name__}.")
    link: Link = "none"
    for kinds, known in _LINKS.items():
        if isinstance(loss, kinds):
            link = known
    if loss is cross_entropy_of_probabilities:
        link = "linear"  # scores are the probabilities themselves
    whole = _fed(loss, loss, max(labels))
    each = _each(loss, whole, scores, y, max(labels))
    plain = type(loss) is nn.BCELoss and loss.weight is None and loss.reduction == "mean"
    if plain or loss is cross_entropy_of_probabilities:
        # The same quantity as that of scores before a sigmoid or softmax, and the same name.
        return PointLoss((CrossEntropy if several else Logistic).definition, link, each, whole, of_probabilities=True)
    return PointLoss(_name(loss), link, each, whole)


def _own(loss: Loss | CrossEntropy, several: bool, positive: float) -> PointLoss:
    twin = loss.torch()
    if isinstance(loss, CrossEntropy) != several and not (several and isinstance(loss, Square)):
        count = "several outputs" if several else "one output"
        raise TypeError(f"{type(loss).__name__}() does not fit a model with {count}.")
    if several and isinstance(loss, Square):

        def each(score: Tensor, y: Tensor) -> Tensor:
            return twin(score, nn.functional.one_hot(y, score.shape[1]).to(score.dtype)).sum(1)  # type: ignore[no-any-return]
    elif isinstance(loss, (Logistic, Hinge)):

        def each(score: Tensor, y: Tensor) -> Tensor:
            return twin(score, (y == positive).to(score.dtype).mul_(2.0).sub_(1.0))  # type: ignore[no-any-return]
    else:

        def each(score: Tensor, y: Tensor) -> Tensor:
            return twin(score, y)  # type: ignore[no-any-return]

    links: dict[type, Link] = {Square: "linear", Logistic: "sigmoid", CrossEntropy: "softmax"}
    return PointLoss(loss.definition, links.get(type(loss), "none"), each, lambda s, y: each(s, y).mean())


def _fed(loss: Any, function: Function, positive: float) -> Function:
    if isinstance(loss, (nn.BCEWithLogitsLoss, nn.BCELoss)):
        return lambda score, y: function(score, (y == positive).to(score.dtype))
    return function


def _each(loss: Any, whole: Function, scores: Tensor, y: Tensor, positive: float) -> Function | None:
    """A function that gives one number per point, if the mean of these numbers equals the loss itself."""
    tries: list[Function] = []
    if isinstance(loss, nn.Module) and isinstance(getattr(loss, "reduction", None), str):
        single = copy.copy(loss)
        single.reduction = "none"  # type: ignore[assignment]
        tries.append(_fed(loss, single, positive))
    tries += [whole, torch.vmap(lambda s, t: whole(s[None], t[None]))]
    expected = whole(scores, y)
    for attempt in tries:
        try:
            values = attempt(scores, y)
        except (RuntimeError, ValueError, TypeError, NotImplementedError):
            continue
        if values.shape[:1] == y.shape and (values.is_meta or torch.allclose(values.mean(), expected.mean())):
            return lambda s, t, one=attempt: one(s, t).reshape(len(t), -1).mean(1)  # type: ignore[misc]
    return None


def _name(loss: Any) -> str:
    if isinstance(loss, nn.Module):
        return " ".join(repr(loss).split())
    return str(getattr(loss, "__name__", type(loss).__name__))
