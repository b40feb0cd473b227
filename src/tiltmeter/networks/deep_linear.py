"""deep_linear: products of matrices, the best-understood networks."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor, nn


def deep_linear(inputs: int, width: int, depth: int, outputs: int = 1, scale: float = 1.0) -> nn.Sequential:
    """`depth` Linear layers without bias, entries N(0, scale^2 / inputs of the layer).

    >>> [tuple(layer.weight.shape) for layer in deep_linear(8, 100, 3)]
    [(100, 8), (100, 100), (1, 100)]
    """
    if depth < 1:
        raise ValueError(f"`depth` should be at least 1. Found depth = {depth}.")
    sizes = [inputs, *[width] * (depth - 1), outputs]
    layers = [nn.Linear(a, b, bias=False) for a, b in pairwise(sizes)]
    with torch.no_grad():
        for layer in layers:
            layer.weight.normal_(0.0, scale / math.sqrt(layer.in_features))
    return nn.Sequential(*layers)


def compact_weight(model: nn.Module) -> Tensor:
    """The product of a stack of Linear layers without bias, (outputs, inputs).

    >>> compact_weight(deep_linear(8, 100, 3)).shape
    torch.Size([1, 8])

    A module with its own `forward` is tried once: its output should be that of the product.
    """
    product: Tensor | None = None
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            if layer._parameters["bias"] is not None:
                raise ValueError("A compact weight needs Linear layers without bias. Found one with a bias.")
            product = layer.weight if product is None else layer.weight @ product
        elif not isinstance(layer, (nn.Sequential, nn.Identity, nn.Flatten)) and layer is not model:
            raise ValueError(f"A compact weight needs Linear layers only. Found {type(layer).__name__}.")
    if product is None:
        raise ValueError("A compact weight needs Linear layers. Found none.")
    if not isinstance(model, (nn.Sequential, nn.Linear)) and not _computes(model, product):
        raise ValueError(
            "A compact weight needs Linear layers only, one after the other. Found that "
            f"{type(model).__name__} computes something else."
        )
    return product


@torch.no_grad()
def _computes(model: nn.Module, product: Tensor) -> bool:
    """Whether the module multiplies by this matrix, tested on a point and on its opposite: a ReLU is not active for
    both.
    """
    point = torch.cos(torch.arange(product.shape[1], dtype=torch.float64)).to(product)[None]
    points = torch.cat([point, -point])
    expected = points @ product.T
    try:
        found = model(points)
    except RuntimeError:
        return False
    if not isinstance(found, Tensor) or found.numel() != expected.numel():
        return False
    # bfloat16 rounds to 0.4 % in every layer.
    return bool((found.reshape(expected.shape) - expected).abs().max() <= 0.02 * expected.abs().max())
