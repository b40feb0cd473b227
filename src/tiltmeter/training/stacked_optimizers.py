"""The updates of SGD, momentum, Adam and AdamW for stacked parameters, where every run may have its own rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

#: What makes an optimiser from parameters: `torch.optim.Adam` itself, or `partial(torch.optim.SGD, momentum=0.9)`.
MakeOptimizer: TypeAlias = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]

#: A number for all runs, or one for each, of shape (runs,).
Rate: TypeAlias = float | Tensor

#: Parameters of all runs and their gradients (None: no part in the loss); the parameters are changed.
Update: TypeAlias = Callable[[Sequence[Tensor], Sequence[Tensor | None]], None]


def stacked_update(settings: torch.optim.Optimizer, lr: Rate, weight_decay: Rate) -> Update:
    """The update that this optimiser makes, for stacked parameters, with these rates instead of its own.

    The formulas are those of `torch.optim`, in the same order of operations.
    """
    defaults = settings.defaults
    kind = type(settings)
    if len(settings.param_groups) > 1:
        raise ValueError(
            f"`optimizer` should treat all parameters alike. Found {len(settings.param_groups)} parameter groups."
        )
    if kind not in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        raise TypeError(f"`optimizer` should make a torch.optim SGD, Adam or AdamW. Found {kind.__name__}.")
    for option in ("maximize", "amsgrad", "differentiable"):
        if defaults.get(option):
            raise ValueError(f"`optimizer` should not set {option}: stacked runs cannot. Found {option} = True.")
    if kind is torch.optim.SGD:
        return _sgd(lr, weight_decay, defaults["momentum"], defaults["dampening"], defaults["nesterov"])
    decoupled = kind is torch.optim.AdamW or bool(defaults.get("decoupled_weight_decay"))
    return _adam(lr, weight_decay, defaults["betas"], defaults["eps"], decoupled)


def _sgd(lr: Rate, weight_decay: Rate, momentum: float, dampening: float, nesterov: bool) -> Update:
    velocities: dict[int, Tensor] = {}

    def change(key: int, parameter: Tensor, gradient: Tensor) -> None:
        gradient = _decayed(gradient, parameter, weight_decay)
        if momentum:
            if key not in velocities:
                velocities[key] = gradient.clone()
            else:
                velocities[key].mul_(momentum).add_(gradient, alpha=1 - dampening)
            gradient = gradient.add(velocities[key], alpha=momentum) if nesterov else velocities[key]
        _subtract(parameter, gradient, lr)

    return _for_each(change)


def _adam(lr: Rate, weight_decay: Rate, betas: tuple[Any, Any], eps: float, decoupled: bool) -> Update:
    first, second = (float(beta) for beta in betas)
    states: dict[int, tuple[Tensor, Tensor]] = {}
    counts: dict[int, int] = {}

    def change(key: int, parameter: Tensor, gradient: Tensor) -> None:
        if key not in states:
            states[key] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        mean, square = states[key]
        count = counts[key] = counts.get(key, 0) + 1
        if not decoupled:
            gradient = _decayed(gradient, parameter, weight_decay)
        elif _is_set(weight_decay):
            parameter.mul_(1 - _along(lr, parameter) * _along(weight_decay, parameter))
        mean.lerp_(gradient, 1 - first)
        square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        scale = (square.sqrt() / math.sqrt(1 - second**count)).add_(eps)
        correction = 1 - first**count
        if isinstance(lr, float):
            parameter.addcdiv_(mean, scale, value=-lr / correction)
        else:
            parameter.sub_(mean.div(scale).mul_(_along(lr, parameter) / correction))

    return _for_each(change)


def _for_each(change: Callable[[int, Tensor, Tensor], None]) -> Update:
    @torch.no_grad()
    def update(parameters: Sequence[Tensor], gradients: Sequence[Tensor | None]) -> None:
        for key, (parameter, gradient) in enumerate(zip(parameters, gradients, strict=True)):
            if gradient is not None:
                change(key, parameter, gradient)

    return update


def _is_set(rate: Rate) -> bool:
    return isinstance(rate, Tensor) or rate != 0.0


def _decayed(gradient: Tensor, parameter: Tensor, weight_decay: Rate) -> Tensor:
    if not _is_set(weight_decay):
        return gradient
    if isinstance(weight_decay, float):
        return gradient.add(parameter, alpha=weight_decay)
    return gradient.addcmul(parameter, _along(weight_decay, parameter))


def _subtract(parameter: Tensor, change: Tensor, lr: Rate) -> None:
    if isinstance(lr, float):
        parameter.add_(change, alpha=-lr)
    else:
        parameter.addcmul_(change, _along(lr, parameter), value=-1)


def _along(rate: Rate, parameter: Tensor) -> Any:
    """A rate per run, shaped to multiply a stacked parameter."""
    if isinstance(rate, float):
        return rate
    return rate.to(parameter.dtype).reshape(-1, *(1,) * (parameter.dim() - 1))
