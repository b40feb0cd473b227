"""Networks: small architectures in plain PyTorch, for examples and measures; tiltmeter works with any module.

>>> mlp(784, (256,), 1)
Sequential(
  (0): Flatten(start_dim=1, end_dim=-1)
  (1): Linear(in_features=784, out_features=256, bias=True)
  (2): ReLU()
  (3): Linear(in_features=256, out_features=1, bias=True)
)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


class Sine(nn.Module):
    """sin(x)."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(x)


class Gaussian(nn.Module):
    """exp(-x^2 / 2)."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.exp(-0.5 * x * x)


ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "gelu": nn.GELU,
    "identity": nn.Identity,
    "sine": Sine,
    "gaussian": Gaussian,
}


def activation(name: str) -> nn.Module:
    """A new module for this activation.

    >>> activation("tanh")
    Tanh()
    """
    if name not in ACTIVATIONS:
        raise KeyError(f"No activation {name!r}. There are: {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]()


def mlp(
    inputs: int, hidden: Sequence[int] = (256,), outputs: int = 1, nonlinearity: str = "relu", bias: bool = True
) -> nn.Sequential:
    """Linear layers of these widths with a nonlinearity between them, with PyTorch's default initialisation.

    >>> sum(p.numel() for p in mlp(10, (20, 30), 1).parameters())
    881

    Args:
        inputs: Number of inputs.
        hidden: Widths of the hidden layers.
        outputs: Number of outputs.
        nonlinearity: Name of the function between layers, such as "relu" or "tanh".
        bias: Whether layers have biases.
    """
    layers: list[nn.Module] = [nn.Flatten()]
    for a, b in pairwise([inputs, *hidden]):
        layers += [nn.Linear(a, b, bias=bias), activation(nonlinearity)]
    return nn.Sequential(*layers, nn.Linear([inputs, *hidden][-1], outputs, bias=bias))


def deep_linear(inputs: int, width: int, depth: int, outputs: int = 1, scale: float = 1.0) -> nn.Sequential:
    """`depth` Linear layers without bias, entries N(0, scale^2 / inputs of the layer).

    >>> [tuple(layer.weight.shape) for layer in deep_linear(8, 100, 3)]
    [(100, 8), (100, 100), (1, 100)]

    Args:
        inputs: Number of inputs.
        width: Units of every hidden layer.
        depth: Number of layers.
        outputs: Number of outputs.
        scale: Standard deviation of the weights, times sqrt(inputs of the layer).
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

    Args:
        model: Network to look at; it is not changed.
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
        found = model(points.clone())
    except RuntimeError:
        return False
    if not isinstance(found, Tensor) or found.numel() != expected.numel():
        return False
    # bfloat16 rounds to 0.4 % in every layer.
    return bool((found.reshape(expected.shape) - expected).abs().max() <= 0.02 * expected.abs().max())


class TwoLayer(nn.Module):
    """`units` neurons without bias; weights `v` (units, inputs) and `u` (units,).

    >>> absolute = TwoLayer(v=torch.tensor([[1.0], [-1.0]]), u=torch.ones(2))  # relu(x) + relu(-x)
    >>> absolute(torch.tensor([[-2.0], [3.0]])).tolist()
    [2.0, 3.0]

    Args:
        v: Weights of the first layer, (units, inputs).
        u: Weights of the second layer, (units,).
    """

    def __init__(self, v: Tensor, u: Tensor) -> None:
        super().__init__()
        self.v, self.u = nn.Parameter(v), nn.Parameter(u)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x.flatten(1) @ self.v.T) @ self.u


def two_layer(inputs: int, units: int, scale: float = 1e-4, dtype: torch.dtype = torch.float64) -> TwoLayer:
    """Gaussian directions v_j of typical length `scale`; u_j has their length and alternating signs.

    >>> net = two_layer(2, 50)
    >>> bool(torch.allclose(net.u.abs(), net.v.norm(dim=1)))
    True

    Args:
        inputs: Number of inputs.
        units: Number of neurons.
        scale: Typical length of the weights of a neuron.
        dtype: Type of the weights.
    """
    if scale <= 0:
        raise ValueError(f"`scale` should be positive. Found scale = {scale}.")
    v = scale * torch.randn(units, inputs, dtype=dtype) / inputs**0.5
    signs = torch.where(torch.arange(units) % 2 == 0, 1.0, -1.0).to(dtype)
    return TwoLayer(v, signs * v.norm(dim=1))
