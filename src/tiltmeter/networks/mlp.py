"""mlp: fully connected networks of any depth and width."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import nn

from tiltmeter.networks.activations import activation


def mlp(
    inputs: int, hidden: Sequence[int] = (256,), outputs: int = 1, nonlinearity: str = "relu", bias: bool = True
) -> nn.Sequential:
    """Linear layers of these widths with a nonlinearity between; PyTorch's own initialisation.

    >>> sum(p.numel() for p in mlp(10, (20, 30), 1).parameters())
    881
    """
    layers: list[nn.Module] = [nn.Flatten()]
    for a, b in pairwise([inputs, *hidden]):
        layers += [nn.Linear(a, b, bias=bias), activation(nonlinearity)]
    return nn.Sequential(*layers, nn.Linear([inputs, *hidden][-1], outputs, bias=bias))
