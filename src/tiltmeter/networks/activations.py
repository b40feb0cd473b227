"""Activations by name, for networks that are described in a file."""

from __future__ import annotations

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
