"""The mean loss of every group in a batch, and the gradients of these means."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn


def group_means(losses: Tensor, codes: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """Mean loss of every group, 0 where it has no point, and the number of its points.

    >>> group_means(torch.tensor([1.0, 3.0, 5.0]), torch.tensor([0, 0, 2]), 3)
    (tensor([2., 0., 5.]), tensor([2., 0., 1.]))
    """
    counts = torch.bincount(codes, minlength=groups).to(losses.dtype)
    sums = torch.zeros(groups, dtype=losses.dtype, device=losses.device).index_add(0, codes, losses)
    return sums / counts.clamp(min=1.0), counts


def group_gradients(means: Tensor, which: np.ndarray, model: nn.Module) -> Tensor:
    """Return a row for every group: the gradient of its mean with respect to all trained parameters.

    Rows of groups that are not in `which` are zero.
    The graph is kept, so that the weighted sum of the means can be differentiated afterwards.

    A network that stands in for a wider one, as a twin does, has `gradient_norms`: what the square of a parameter's
    gradient counts in the wider network, by name.
    """
    named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    trained = list(named.values())
    norms: Mapping[str, float] = getattr(model, "gradient_norms", {})
    factors = [norms.get(name, 1.0) ** 0.5 for name in named]
    rows = means.new_zeros(len(means), sum(parameter.numel() for parameter in trained))
    for code in which:
        found = torch.autograd.grad(means[int(code)], trained, retain_graph=True, allow_unused=True)
        parts = [
            torch.zeros_like(p) if g is None else (g if factor == 1.0 else factor * g)
            for p, g, factor in zip(trained, found, factors, strict=True)
        ]
        torch.cat([part.flatten() for part in parts], out=rows[int(code)])
    return rows
