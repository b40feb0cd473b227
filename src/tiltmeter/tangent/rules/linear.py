"""linear: out = W a + b at every position of a point, so grad_W = sum of delta a^T and grad_b = sum of delta."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tiltmeter.tangent.factors.tokens import Tokens


def linear(module: nn.Linear, inputs: Tensor, delta: Tensor) -> Tokens:
    """(a . a' + 1) (delta . delta'), summed over pairs of positions if a point has several."""
    points, outputs = delta.shape[:2]
    a = inputs.reshape(points, -1, module.in_features)
    return Tokens(
        trained_inputs(a, module.weight, module.bias), delta.reshape(points, outputs, -1, module.out_features)
    )


def trained_inputs(a: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The inputs (points, positions, inputs) that multiply trainable parameters; a bias multiplies a constant 1."""
    parts = [a] if weight.requires_grad else []
    if bias is not None and bias.requires_grad:
        parts.append(a.new_ones(*a.shape[:2], 1))
    return torch.cat(parts, 2) if len(parts) > 1 else parts[0]
