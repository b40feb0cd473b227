"""Weight matrices of a model by name, and which of them are consecutive layers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

#: Modules that do not change their input.
PLAIN = (nn.Identity, nn.Flatten)
#: Modules that multiply each number by its own factor: a neuron may grow while the next layer's weights on it shrink.
GATES = (nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.Dropout)


def weight_matrices(module: nn.Module) -> dict[str, Tensor]:
    """Every weight with two or more dimensions as a matrix (outputs, inputs) in double precision; kernels are
    flattened.

    >>> model = nn.Sequential(nn.Conv2d(3, 8, 5), nn.Linear(8, 2))
    >>> {name: tuple(w.shape) for name, w in weight_matrices(model).items()}
    {'0.weight': (8, 75), '1.weight': (2, 8)}
    """
    found = {
        name: value.detach().flatten(1).double().cpu()
        for name, value in module.named_parameters()
        if value.ndim >= 2 and value.is_floating_point()
    }
    if not found:
        raise ValueError("A model should have weight matrices. Found none.")
    for name, matrix in found.items():
        check_finite(name, matrix)
    return found


def check_finite(name: str, weight: Tensor) -> None:
    """Check that all weights are finite; otherwise raise an error that names them."""
    if not torch.isfinite(weight).all():
        raise ValueError(f"Weights should be finite. Found others in {name}.")


@dataclass(frozen=True)
class Adjacent:
    """Two consecutive Linear layers. `linear`: everything between them is linear; `gated`: there is (also) a module
    that switches single neurons on and off, such as a ReLU.
    """

    name: str
    before: nn.Linear
    after: nn.Linear
    linear: bool
    gated: bool


def adjacent(module: nn.Module) -> list[Adjacent]:
    """Consecutive Linear layers in chains of modules (nn.Sequential, nested or not), in order.

    >>> [(two.name, two.linear) for two in adjacent(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)))]
    [('0 > 2', False)]

    Only in such chains does the order of modules show which layer feeds which. A model without them has no adjacent
    layers.
    """
    found: list[Adjacent] = []
    inside: set[int] = set()
    for name, part in module.named_modules():
        if isinstance(part, nn.Sequential) and id(part) not in inside:
            inside.update(id(child) for child in part.modules())
            leaves = _leaves(part, f"{name}." if name else "")
            places = [i for i, (_, leaf) in enumerate(leaves) if isinstance(leaf, nn.Linear)]
            for i, j in pairwise(places):
                (first, before), (second, after) = leaves[i], leaves[j]
                assert isinstance(before, nn.Linear)
                assert isinstance(after, nn.Linear)
                if before.out_features == after.in_features:
                    between = [leaf for _, leaf in leaves[i + 1 : j]]
                    linear = all(isinstance(leaf, PLAIN) for leaf in between)
                    gated = all(isinstance(leaf, (*PLAIN, *GATES)) for leaf in between)
                    found.append(Adjacent(f"{first} > {second}", before, after, linear, gated))
    return found


def _leaves(chain: nn.Sequential, prefix: str) -> list[tuple[str, nn.Module]]:
    found: list[tuple[str, nn.Module]] = []
    for name, child in chain.named_children():
        if isinstance(child, nn.Sequential):
            found += _leaves(child, f"{prefix}{name}.")
        else:
            found.append((f"{prefix}{name}", child))
    return found
