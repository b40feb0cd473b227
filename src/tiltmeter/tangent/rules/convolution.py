"""convolution: a Linear layer on every patch of the image or sequence."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tiltmeter.tangent.factors.rows import Rows
from tiltmeter.tangent.factors.tokens import Tokens
from tiltmeter.tangent.rules.linear import trained_inputs


def convolution(module: nn.Conv1d | nn.Conv2d, inputs: Tensor, delta: Tensor) -> Tokens | Rows:
    """Like `linear`, with patches as inputs; for groups of channels, explicit gradients."""
    a, delta = patches(module, inputs), delta.flatten(3).transpose(2, 3)
    if module.groups == 1:
        return Tokens(trained_inputs(a, module.weight, module.bias), delta)
    parts = []
    if module.weight.requires_grad:
        mine = a.reshape(*a.shape[:2], module.groups, -1)
        theirs = delta.reshape(*delta.shape[:3], module.groups, -1)
        parts.append(torch.einsum("ptgi,pctgu->pcgui", mine, theirs).flatten(2))
    if module.bias is not None and module.bias.requires_grad:
        parts.append(delta.sum(2))
    return Rows(torch.cat(parts, 2))


def patches(module: nn.Conv1d | nn.Conv2d, inputs: Tensor) -> Tensor:
    """The input of the kernel at each position, (points, positions, channels x kernel)."""
    mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
    around = F.pad(inputs, module._reversed_padding_repeated_twice, mode=mode)
    if isinstance(module, nn.Conv1d):
        size, dilation, stride = (1, *module.kernel_size), (1, *module.dilation), (1, *module.stride)
        return F.unfold(around[:, :, None], size, dilation, stride=stride).transpose(1, 2)
    return F.unfold(around, module.kernel_size, module.dilation, stride=module.stride).transpose(1, 2)
