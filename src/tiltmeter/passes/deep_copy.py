"""deep_copy: a copy of a module that shares nothing with it."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn


def deep_copy(model: nn.Module) -> nn.Module:
    """A deep copy, in single precision where the model has less.

    Tensors that a module has computed and kept (the weight under the older weight norm, a cached activation) are copied
    without their history, with which torch would refuse. Half precision is made to train in, not to compare gradients
    in: its numbers are kept and what is computed from them is exact to 1e-7.

    >>> line = nn.Linear(2, 1).bfloat16()
    >>> deep_copy(line).weight.dtype, line.weight.dtype
    (torch.float32, torch.bfloat16)
    """
    kept = [value for module in model.modules() for value in vars(module).values() if isinstance(value, Tensor)]
    memo = {id(value): value.detach().clone() for value in kept if not value.is_leaf}
    found = copy.deepcopy(model, memo)
    halves = any(value.dtype in (torch.bfloat16, torch.float16) for value in found.parameters())
    return found.float() if halves else found
