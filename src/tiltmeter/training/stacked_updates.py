"""The updates of SGD, momentum, Adam and AdamW for stacked parameters, where every run may have its own rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor

from tiltmeter.training.stacked_linear_layers import Product

#: A number for all runs, or one for each, of shape (runs,).
Rate: TypeAlias = float | Tensor

#: Gradients of all runs by the name of their parameter (None: it does not affect the loss).
Gradients: TypeAlias = Mapping[str, Tensor | Product | None]

#: Changes the parameters of all runs, by name, given their gradients and the learning rate of this step.
Update: TypeAlias = Callable[[Mapping[str, Tensor], Gradients, Rate], None]

#: A formula for one parameter: its name, itself, its gradient, spare memory of its size, the learning rate.
Formula: TypeAlias = Callable[[str, Tensor, Tensor, Tensor, Rate], None]


def stacked_update(
    settings: torch.optim.Optimizer,
    weight_decay: Rate,
    clip: float | None = None,
    memory: dict[str, Any] | None = None,
) -> Update:
    """The update that this optimiser makes, for stacked parameters, with this weight decay instead of its own.

    >>> weights = {"weight": torch.ones(2, 1, 3)}  # two runs, each of one layer
    >>> update = stacked_update(torch.optim.SGD([torch.zeros(1)], lr=0.1), weight_decay=0.0)
    >>> update(weights, {"weight": torch.ones(2, 1, 3)}, torch.tensor([0.1, 0.5]))  # a rate for each
    >>> weights["weight"][:, 0, 0]
    tensor([0.9000, 0.5000])

    The formulas are those of `torch.optim`, in the same order of operations. What is remembered from step to step
    (velocities, moments) is kept in `memory`, so that it can be saved and put back.

    Args:
        settings: Optimiser of torch whose formula is taken.
        weight_decay: Weight decay of every run, instead of its own.
        clip: Largest norm of a gradient; None: no limit.
        memory: Keeps velocities and moments from step to step; None: a new dictionary.
    """
    kept: dict[str, Any] = {} if memory is None else memory
    defaults = {**settings.defaults, **settings.param_groups[0]}
    kind = type(settings)
    if len(settings.param_groups) > 1:
        raise ValueError(
            f"`optimiser` should treat all parameters alike. Found {len(settings.param_groups)} parameter groups."
        )
    if kind not in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        raise TypeError(f"`optimiser` should make an SGD, Adam or AdamW of torch.optim. Found {kind.__name__}.")
    for option in ("maximize", "amsgrad", "differentiable"):
        if defaults.get(option):
            raise ValueError(f"`optimiser` should not set {option}: stacked runs cannot. Found {option} = True.")
    if kind is torch.optim.SGD:
        return _sgd(weight_decay, defaults["momentum"], defaults["dampening"], defaults["nesterov"], clip, kept)
    decoupled = kind is torch.optim.AdamW or bool(defaults.get("decoupled_weight_decay"))
    return _adam(weight_decay, defaults["betas"], defaults["eps"], decoupled, clip, kept)


def _sgd(
    weight_decay: Rate,
    momentum: float,
    dampening: float,
    nesterov: bool,
    clip: float | None,
    velocities: dict[str, Tensor],
) -> Update:
    def change(name: str, parameter: Tensor, gradient: Tensor, spare: Tensor, lr: Rate) -> None:
        gradient = _decayed(gradient, parameter, weight_decay, spare)
        if momentum:
            if name not in velocities:
                velocities[name] = gradient.clone()
            else:
                velocities[name].mul_(momentum).add_(gradient, alpha=1 - dampening)
            velocity = velocities[name]
            gradient = torch.add(gradient, velocity, alpha=momentum, out=spare) if nesterov else velocity
        if isinstance(lr, float):
            parameter.add_(gradient, alpha=-lr)
        else:
            parameter.addcmul_(gradient, _along(lr, parameter), value=-1)

    def at_once(parameter: Tensor, gradient: Product, lr: Rate) -> bool:
        # Plain SGD adds the product to the weights while it is computed.
        if momentum or parameter.shape[1] == 1 or isinstance(weight_decay, Tensor):
            return False
        if isinstance(lr, Tensor) and weight_decay:
            return False
        inputs, slopes = gradient.inputs.transpose(1, 2), gradient.slopes
        if isinstance(lr, float):
            parameter.transpose(1, 2).baddbmm_(inputs, slopes, beta=1.0 - lr * weight_decay, alpha=-lr)
        else:
            parameter.transpose(1, 2).baddbmm_(inputs, slopes * _along(lr, slopes), alpha=-1)
        return True

    return _for_each(change, at_once, clip)


def _adam(
    weight_decay: Rate,
    betas: tuple[Any, Any],
    eps: float,
    decoupled: bool,
    clip: float | None,
    states: dict[str, tuple[Tensor, Tensor, int]],
) -> Update:
    first, second = (float(beta) for beta in betas)

    def change(name: str, parameter: Tensor, gradient: Tensor, spare: Tensor, lr: Rate) -> None:
        if name not in states:
            states[name] = torch.zeros_like(parameter), torch.zeros_like(parameter), 0
        mean, square, count = states[name]
        count += 1
        states[name] = mean, square, count
        if not decoupled:
            gradient = _decayed(gradient, parameter, weight_decay, spare)
        elif _is_set(weight_decay):
            parameter.mul_(1 - _along(lr, parameter) * _along(weight_decay, parameter))
        mean.lerp_(gradient, 1 - first)
        square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        scale = torch.sqrt(square, out=spare).div_(math.sqrt(1 - second**count)).add_(eps)
        correction = 1 - first**count
        if isinstance(lr, float):
            parameter.addcdiv_(mean, scale, value=-lr / correction)
        else:
            parameter.sub_(torch.div(mean, scale, out=spare).mul_(_along(lr, parameter) / correction))

    return _for_each(change, lambda *_: False, clip)


def _for_each(change: Formula, at_once: Callable[[Tensor, Product, Rate], bool], clip: float | None) -> Update:
    """Apply a formula to every parameter; `spare` is memory of the same size that the formula may overwrite.

    Allocating memory for stacked parameters costs more than the arithmetic, so it is done only once. Gradients are not
    changed, because autograd may return one tensor twice.
    """
    spares: dict[str, Tensor] = {}

    @torch.no_grad()
    def update(parameters: Mapping[str, Tensor], gradients: Gradients, lr: Rate) -> None:
        if clip is not None:
            gradients = _clipped(parameters, gradients, clip)
        for name, gradient in gradients.items():
            parameter = parameters[name]
            if gradient is None or (isinstance(gradient, Product) and at_once(parameter, gradient, lr)):
                continue
            if name not in spares:
                spares[name] = torch.empty_like(parameter)
            dense = gradient.dense(spares[name]) if isinstance(gradient, Product) else gradient
            change(name, parameter, dense, spares[name], lr)

    return update


def _clipped(parameters: Mapping[str, Tensor], gradients: Gradients, largest: float) -> Gradients:
    """The gradients of every run scaled down to this norm, as `torch.nn.utils.clip_grad_norm_` does for one."""
    dense = {
        name: gradient.dense(torch.empty_like(parameters[name])) if isinstance(gradient, Product) else gradient
        for name, gradient in gradients.items()
        if gradient is not None
    }
    norms = torch.stack([gradient.flatten(1).norm(dim=1) for gradient in dense.values()]).norm(dim=0)
    factors = (largest / (norms + 1e-6)).clamp(max=1.0)
    return {name: gradient * _along(factors, gradient) for name, gradient in dense.items()}


def _is_set(rate: Rate) -> bool:
    return isinstance(rate, Tensor) or rate != 0.0


def _decayed(gradient: Tensor, parameter: Tensor, weight_decay: Rate, spare: Tensor) -> Tensor:
    if not _is_set(weight_decay):
        return gradient
    if isinstance(weight_decay, float):
        return torch.add(gradient, parameter, alpha=weight_decay, out=spare)
    return torch.addcmul(gradient, parameter, _along(weight_decay, parameter), out=spare)


def _along(rate: Rate, parameter: Tensor) -> Any:
    """A rate per run, shaped to multiply a stacked parameter."""
    if isinstance(rate, float):
        return rate
    return rate.to(parameter.device, parameter.dtype).reshape(-1, *(1,) * (parameter.dim() - 1))
