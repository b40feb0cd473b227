"""Displacement: how far the weights move in a forecast, and derivatives of the outputs along that direction."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from tiltmeter.modules.forward import Read, flat_scores
from tiltmeter.modules.tangent.gradient import differentiable
from tiltmeter.modules.untouched import deep_copy, untouched

#: Points that go through the network together.
CHUNK = 512
#: The step of finite differences, relative to the direction.
SHORT = 1e-5

Weights = dict[str, Tensor]


def trained(model: nn.Module) -> Weights:
    """Return the trainable weights by name."""
    return {name: value.detach() for name, value in model.named_parameters() if value.requires_grad}


def radial(model: nn.Module, x: Tensor, read: Read | None) -> np.ndarray:
    """Return J w0, the derivative of every output when all weights are scaled: one row per point."""
    weights = trained(model)
    return along(model, x, weights, read)[1]


def along(model: nn.Module, x: Tensor, direction: Weights, read: Read | None) -> tuple[np.ndarray, np.ndarray]:
    """Return outputs before training and their derivative along a direction of the weights, (points, outputs) each."""
    try:
        return _twice_backward(model, x, direction, read)
    except RuntimeError:  # for instance, EmbeddingBag has no second derivative; NotImplementedError is a RuntimeError
        return _difference(model, x, direction, read)


def _twice_backward(
    model: nn.Module, x: Tensor, direction: Weights, read: Read | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivative by two backward passes: the gradient of u . f along the direction is linear in u.

    torch.func.jvp gives the same, but its first call takes seconds to import modules.
    """
    found = []
    with untouched(model), differentiable():
        leaves = {name: value.clone().requires_grad_() for name, value in trained(model).items()}
        for part in _parts(x, leaves):
            outputs = flat_scores(functional_call(model, leaves, (part,)), len(part), read)
            u = torch.zeros_like(outputs, requires_grad=True)
            gradients = torch.autograd.grad(outputs, list(leaves.values()), u, create_graph=True, allow_unused=True)
            pairs = zip(gradients, direction.values(), strict=True)
            total = sum(((g * d).sum() for g, d in pairs if g is not None), torch.zeros(()).to(u))
            found.append((outputs.detach(), torch.autograd.grad(total, u)[0]))
    return _rows(found)


def _difference(model: nn.Module, x: Tensor, direction: Weights, read: Read | None) -> tuple[np.ndarray, np.ndarray]:
    """Return central differences in double precision, accurate to 1e-9 of the outputs."""
    found = []
    own = deep_copy(model).double()
    with untouched(own):
        weights = trained(own)
        moved = [
            {name: value + sign * SHORT * direction[name].double() for name, value in weights.items()}
            for sign in (-1.0, 0.0, 1.0)
        ]
        for part in _parts(x, weights):
            below, here, above = (flat_scores(functional_call(own, one, (part,)), len(part), read) for one in moved)
            found.append((here, (above - below) / (2.0 * SHORT)))
    return _rows(found)


def _rows(found: list[tuple[Tensor, Tensor]]) -> tuple[np.ndarray, np.ndarray]:
    value, slope = (torch.cat(parts).double().cpu().numpy() for parts in zip(*found, strict=True))
    return value.reshape(len(value), -1), slope.reshape(len(slope), -1)


def _parts(x: Tensor, weights: Weights) -> Iterator[Tensor]:
    like = next(iter(weights.values()))
    for start in range(0, len(x), CHUNK):
        part = x[start : start + CHUNK].to(like.device)
        yield part.to(like.dtype) if part.is_floating_point() else part
