"""Strata: a sample of the weights of a network, tensor by tensor, and how many weights each stands for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import nn

#: Tensors with no more numbers are taken whole: biases and read-outs count for more than their number.
WHOLE = 300


@dataclass(frozen=True, eq=False)
class Stratum:
    """Some numbers of one parameter: their places in it, and how many numbers each stands for."""

    name: str
    places: np.ndarray
    stands_for: float


def strata(model: nn.Module, count: int, seed: int) -> list[Stratum]:
    """About `count` trained weights: small tensors whole, the others in proportion to their size.

    >>> found = strata(nn.Sequential(nn.Linear(50, 40), nn.ReLU(), nn.Linear(40, 1)), 500, seed=0)
    >>> [(one.name, len(one.places), round(one.stands_for, 2)) for one in found]
    [('0.weight', 419, 4.77), ('0.bias', 40, 1.0), ('2.weight', 40, 1.0), ('2.bias', 1, 1.0)]
    """
    sizes = {name: p.numel() for name, p in model.named_parameters() if p.requires_grad}
    small = {name for name, size in sizes.items() if size <= WHOLE}
    left = max(0, count - sum(sizes[name] for name in small))
    others = sum(size for name, size in sizes.items() if name not in small)
    rng = np.random.default_rng((seed, 7))
    found = []
    for name, size in sizes.items():
        wanted = size if name in small or left >= others else min(size, max(1, round(left * size / others)))
        places = np.arange(size) if wanted == size else np.sort(rng.choice(size, wanted, replace=False))
        found.append(Stratum(name, places, size / wanted))
    return found
