"""Minus the logarithm of the probability that scores give to labels."""

from __future__ import annotations

from typing import Any


def log_losses(scores: Any, y: Any, labels: tuple[float, ...]) -> Any:
    """The logistic loss of one score a point, or the cross-entropy of a row of them.

    >>> import torch
    >>> log_losses(torch.tensor([0.0, 2.0]), torch.tensor([1.0, -1.0]), (-1.0, 1.0))
    tensor([0.6931, 2.1269])
    """
    import torch

    if scores.ndim == y.ndim:
        signs = torch.where(y == labels[-1], 1.0, -1.0).to(scores.dtype)
        return torch.nn.functional.softplus(-signs * scores)
    return torch.nn.functional.cross_entropy(scores, y.long(), reduction="none")


def one_number_a_point(found: Any, points: int, law: str) -> Any:
    """The answers of a module as scores: one number or one row for every point.

    >>> import torch
    >>> one_number_a_point(torch.zeros(3, 1), 3, "LfF").shape
    torch.Size([3])
    """
    import torch

    if not isinstance(found, torch.Tensor):
        raise TypeError(f"{law} needs a model that returns a tensor of scores. Found {type(found).__name__}.")
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim not in (1, 2) or len(found) != points:
        raise ValueError(f"{law} needs one score or one row of them for every point. Found {tuple(found.shape)}.")
    return found
