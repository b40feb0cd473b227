"""The quick forward pass of many stacks of Linear layers at once: one batched product per layer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import torch
from torch import Tensor, nn

#: Modules without parameters that act on every number by itself, so that they need no stacking.
ELEMENTWISE = (
    nn.ELU,
    nn.GELU,
    nn.Hardsigmoid,
    nn.Hardswish,
    nn.Hardtanh,
    nn.Identity,
    nn.LeakyReLU,
    nn.Mish,
    nn.ReLU,
    nn.SELU,
    nn.SiLU,
    nn.Sigmoid,
    nn.Softplus,
    nn.Softsign,
    nn.Tanh,
)

#: One layer: parameters of all runs and inputs (runs or 1, points, features) to outputs (runs, points, features).
Layer: TypeAlias = Callable[[Mapping[str, Tensor], Tensor], Tensor]


def linear_chain(model: nn.Module) -> tuple[Layer, ...] | None:
    """The layers of a stack of Linear layers and activations; None for any other module, subclasses included.

    >>> len(linear_chain(nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))))
    3
    >>> linear_chain(nn.Sequential(nn.Conv1d(1, 2, 3))) is None
    True
    """
    leaves = list(_leaves("", model))
    modules = [module for _, module in leaves]
    if len(set(map(id, modules))) < len(modules) or any(_has_hooks(module) for module in model.modules()):
        return None
    layers: list[Layer] = []
    for name, module in leaves:
        if type(module) is nn.Linear and set(dict(module.named_parameters())) <= {"weight", "bias"}:
            layers.append(_linear(name, module.bias is not None))
        elif type(module) in ELEMENTWISE:
            layers.append(_elementwise(module))
        else:
            return None
    named = [parameter for _, parameter in model.named_parameters(remove_duplicate=False)]
    return tuple(layers) if len(set(map(id, named))) == len(named) and layers else None


def run_chain(layers: Sequence[Layer], parameters: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """The outputs of all runs: x has shape (runs, points, features), or (1, points, features) if all see the same."""
    for layer in layers:
        x = layer(parameters, x)
    return x


def _leaves(name: str, module: nn.Module) -> list[tuple[str, nn.Module]]:
    if type(module) is not nn.Sequential:
        return [(name, module)]
    prefix = f"{name}." if name else ""
    return [leaf for key, child in module._modules.items() if child for leaf in _leaves(f"{prefix}{key}", child)]


def _linear(name: str, with_bias: bool) -> Layer:
    prefix = f"{name}." if name else ""

    def layer(parameters: Mapping[str, Tensor], x: Tensor) -> Tensor:
        weight = parameters[f"{prefix}weight"].transpose(1, 2)
        x = x.expand(len(weight), -1, -1)
        return torch.baddbmm(parameters[f"{prefix}bias"].unsqueeze(1), x, weight) if with_bias else x.bmm(weight)

    return layer


def _elementwise(module: nn.Module) -> Layer:
    own = copy.deepcopy(module)
    if hasattr(own, "inplace"):
        setattr(own, "inplace", False)  # noqa: B010 - the first layer would write into the caller's points
    return lambda _, x: own(x)


def _has_hooks(module: nn.Module) -> bool:
    return bool(
        module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    )
