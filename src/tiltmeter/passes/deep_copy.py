"""deep_copy: an independent copy of a module."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn


def deep_copy(model: nn.Module) -> nn.Module:
    """A deep copy; in single precision if the model has half precision.

    >>> line = nn.Linear(2, 1).bfloat16()
    >>> deep_copy(line).weight.dtype, line.weight.dtype
    (torch.float32, torch.bfloat16)

    Tensors that a module has computed and stored (the weight under the older weight norm, a cached activation) are
    copied without their autograd history, because torch cannot copy it. Half precision is good for training but not for
    comparing gradients: the numbers are kept, and everything computed from them is precise to 1e-7.
    """
    kept = [value for module in model.modules() for value in vars(module).values() if isinstance(value, Tensor)]
    memo = {id(value): value.detach().clone() for value in kept if not value.is_leaf}
    found = copy.deepcopy(model, memo)
    halves = any(value.dtype in (torch.bfloat16, torch.float16) for value in found.parameters())
    return found.float() if halves else found
