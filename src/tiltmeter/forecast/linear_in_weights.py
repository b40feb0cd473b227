"""linear_in_weights: whether the weights that learn act linearly, as those of a head on a frozen backbone do."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tiltmeter.measures.answers import trial_scores
from tiltmeter.passes.deep_copy import deep_copy
from tiltmeter.passes.forward import Read
from tiltmeter.passes.untouched import untouched

#: Second differences up to this part of the scores are rounding.
ROUNDING = 1e-4


#: All weights of a linear head are followed up to this many.
ALL = 20_000


def linear_head(model: nn.Module, few: Tensor, read: Read | None) -> int | None:
    """How many weights learn, if they act linearly and are few enough to follow them all; else None."""
    count = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return count if count <= ALL and linear_in_weights(model, few, read) else None


def linear_in_weights(model: nn.Module, few: Tensor, read: Read | None) -> bool:
    """Whether scores of a few points lie on a line as the weights that learn move from zero through where they are.

    >>> net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    >>> linear_in_weights(net, torch.randn(4, 3), None)
    False
    >>> _ = net[0].requires_grad_(False)
    >>> linear_in_weights(net, torch.randn(4, 3), None)
    True

    Weights of one layer alone are tried: those of several multiply each other.
    """
    learning = [module for module in model.modules() if any(p.requires_grad for p in module.parameters(recurse=False))]
    if len(learning) != 1:
        return False
    own = deep_copy(model)
    weights = [p for p in own.parameters() if p.requires_grad]
    start = [p.detach().clone() for p in weights]
    generator = torch.Generator().manual_seed(0)
    turned = [torch.randn(p.shape, generator=generator).to(p) * p.abs().mean() for p in start]
    found = []
    for stretch in (0.0, 1.0, 2.0):
        with torch.no_grad():
            for weight, first, more in zip(weights, start, turned, strict=True):
                weight.copy_(stretch * (first + more))
        with untouched(own):
            found.append(trial_scores(own, few, read).double())
    bend = found[0] - 2.0 * found[1] + found[2]
    return bool(bend.abs().max() <= ROUNDING * (found[2] - found[0]).abs().max())
