"""Output kind: whether a model answers with probabilities rather than with scores before a sigmoid or softmax."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from tiltmeter.measures.task import Link
from tiltmeter.modules.forward import Read, scores

#: Inputs this much larger drive every score far from where a probability could be.
STRETCH = 1000.0
#: How far rows of probabilities may be from summing to 1.
ROUNDING = 1e-4


def gives_probabilities(model: nn.Module, x: Any, read: Read | None) -> bool:
    """Whether the outputs on these points look like those of a sigmoid or softmax.

    >>> x = torch.randn(8, 3)
    >>> inner = nn.Linear(3, 1)
    >>> gives_probabilities(inner, x, None), gives_probabilities(nn.Sequential(inner, nn.Sigmoid()), x, None)
    (False, True)

    Several outputs: all in [0, 1], rows summing to 1. One output: the last layer is a sigmoid, or outputs stay in
    [0, 1] even for points a thousand times as large and of either sign, where scores do not.
    """
    _, found = next(scores(model, x, read, len(x)))
    if not _inside(found):
        return False
    if found.ndim == 2:
        return bool(((found.sum(1) - 1.0).abs() < ROUNDING).all())
    if read is None and isinstance(_last_layer(model), nn.Sigmoid):
        return True
    if not isinstance(x, Tensor) or not x.is_floating_point():
        return False
    try:
        stretched = [next(scores(model, sign * STRETCH * x, read, len(x)))[1] for sign in (1.0, -1.0)]
    except (IndexError, RuntimeError, ValueError):
        return False  # inputs that are places in a table cannot be stretched
    # A last layer of zeros answers the same to every point, which tells nothing.
    answers = torch.cat([found, *stretched])
    # Nor do tiny weights, whose scores stay near 0 however far the points are: a sigmoid would have reached its end.
    return all(_inside(one) for one in stretched) and bool((answers != answers[0]).any() and answers.max() > 0.5)


def loss_of_probabilities(several: bool) -> Any:
    """The loss that fits a model which ends in a sigmoid or softmax."""
    return cross_entropy_of_probabilities if several else nn.BCELoss()


def cross_entropy_of_probabilities(probability: Tensor, y: Tensor) -> Tensor:
    """Mean of -log of the probability given to the right class."""
    chosen = probability.gather(1, y[:, None])[:, 0]
    return -chosen.clamp_min(torch.finfo(probability.dtype).tiny).log().mean()


def say_probabilities(loss: Any, link: Link, definition: str) -> None:
    """Say once that outputs are probabilities: which loss was taken, or that the one given takes something else."""
    if loss is None:
        warnings.warn(
            "The model's outputs are probabilities, as after a sigmoid or softmax: they are taken as such, with "
            f"loss {definition}.",
            stacklevel=4,
        )
    elif link in ("sigmoid", "softmax"):
        warnings.warn(
            f"The model's outputs are probabilities, as after a sigmoid or softmax, but {definition} takes scores "
            "before it: leave that layer out, or pass a loss of probabilities, as nn.BCELoss().",
            stacklevel=4,
        )


def _inside(found: Tensor) -> bool:
    return bool(torch.isfinite(found).all() and (found >= 0).all() and (found <= 1).all())


def _last_layer(model: nn.Module) -> nn.Module:
    children = list(model.children())
    return _last_layer(children[-1]) if children and isinstance(model, nn.Sequential) else model
