"""gradient: the gradient of the mean loss of some points with respect to all parameters of a module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

#: Losses of the points with these indices, one number each, as a function of the parameters of a module.
Losses = Callable[[Tensor], Tensor]


def gradient(losses: Losses, parameters: Sequence[nn.Parameter], places: Tensor, chunk: int = 256) -> Tensor:
    """Gradient of the mean loss of the points with these indices, all parameters in one vector.

    >>> slope = nn.Parameter(torch.tensor([3.0]))
    >>> x = torch.tensor([1.0, 2.0])
    >>> gradient(lambda places: 0.5 * (slope * x[places]) ** 2, [slope], torch.arange(2))
    tensor([7.5000])

    The gradients that the training stores in the parameters are not changed.
    """
    total = torch.zeros(count_of(parameters), dtype=parameters[0].dtype, device=parameters[0].device)
    with differentiable():
        for part in torch.split(places, chunk):
            found = torch.autograd.grad(losses(part).sum(), parameters, allow_unused=True)
            total += flat(found, parameters)
    return total / len(places)


def trained(module: nn.Module) -> list[nn.Parameter]:
    """The trainable parameters, or an error if there are none."""
    found = [p for p in module.parameters() if p.requires_grad and p.is_floating_point()]
    if not found:
        raise ValueError("Gradients need trainable parameters. Found none in the model.")
    if len({(p.dtype, p.device) for p in found}) > 1:
        raise ValueError("Gradients need parameters of one type on one device. Found several.")
    return found


@contextmanager
def differentiable() -> Iterator[None]:
    """Enable gradients, including second derivatives: the fused kernels of attention do not have them."""
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
        yield


def flat(parts: Sequence[Tensor | None], parameters: Sequence[nn.Parameter]) -> Tensor:
    """One vector; a parameter that is not used (None) gives zeros."""
    filled = [torch.zeros_like(p) if part is None else part for part, p in zip(parts, parameters, strict=True)]
    return torch.cat([part.reshape(-1) for part in filled])


def count_of(parameters: Sequence[nn.Parameter]) -> int:
    return sum(p.numel() for p in parameters)
