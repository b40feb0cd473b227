"""mlp: fully connected networks of any depth and width."""

from __future__ import annotations

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
    """
    layers: list[nn.Module] = [nn.Flatten()]
    for a, b in pairwise([inputs, *hidden]):
        layers += [nn.Linear(a, b, bias=bias), activation(nonlinearity)]
    return nn.Sequential(*layers, nn.Linear([inputs, *hidden][-1], outputs, bias=bias))
