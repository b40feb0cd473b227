"""two_layer: sum_j u_j relu(v_j . x) with balanced small weights, |u_j| = |v_j|."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class TwoLayer(nn.Module):
    """`units` neurons without bias; weights `v` (units, inputs) and `u` (units,)."""

    def __init__(self, v: Tensor, u: Tensor) -> None:
        super().__init__()
        self.v, self.u = nn.Parameter(v), nn.Parameter(u)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x.flatten(1) @ self.v.T) @ self.u


def two_layer(inputs: int, units: int, scale: float = 1e-4, dtype: torch.dtype = torch.float64) -> TwoLayer:
    """Gaussian directions of typical length `scale`, and u_j = +-|v_j| with alternating signs.

    >>> net = two_layer(2, 50)
    >>> bool(torch.allclose(net.u.abs(), net.v.norm(dim=1)))
    True
    """
    if scale <= 0:
        raise ValueError(f"`scale` should be positive. Found scale = {scale}.")
    v = scale * torch.randn(units, inputs, dtype=dtype) / inputs**0.5
    signs = torch.where(torch.arange(units) % 2 == 0, 1.0, -1.0).to(dtype)
    return TwoLayer(v, signs * v.norm(dim=1))
