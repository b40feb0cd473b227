"""Capture: what layers were fed and the gradients at their outputs, by one forward pass and a backward per output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tiltmeter.passes.forward import Read, scores


class Captured(NamedTuple):
    """What one layer was fed, and the gradients of every output at what it returned, (points, outputs, ...)."""

    inputs: Tensor
    delta: Tensor


def placed(model: nn.Module, x: Tensor) -> Tensor:
    """The points where the model's parameters are, in their precision."""
    first = next(model.parameters())
    floating = next((p.dtype for p in model.parameters() if p.is_floating_point()), None)
    kind = floating if floating is not None and x.is_floating_point() else x.dtype
    return x.detach().to(first.device, kind)


def capture(
    model: nn.Module, layers: Sequence[nn.Module], x: Tensor, read: Read | None
) -> tuple[Tensor, dict[nn.Module, Captured | None]]:
    """Scores (points, outputs) and what each layer saw; None for a layer that was called twice or not on points.

    A layer that was not called at all is left out.
    """
    seen: dict[nn.Module, tuple[Tensor, Tensor] | None] = {}

    def watch(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        inputs = args[0] if args else kwargs.get("input")
        if (
            module in seen
            or len(args) + len(kwargs) != 1
            or not (isinstance(inputs, Tensor) and isinstance(output, Tensor))
            or not len(inputs) == len(output) == len(x)
        ):
            seen[module] = None
            return None
        # A zero is added, since what was returned may be changed in place by the next layer; the zero never is.
        zero = torch.zeros_like(output, requires_grad=True)
        seen[module] = (inputs.detach(), zero)
        return output + zero

    with _hooked(layers, watch), torch.enable_grad():
        _, found = next(scores(model, x, read, len(x)))
        found = found.reshape(len(x), -1)
    used = {module: pair for module, pair in seen.items() if pair is not None}
    zeros = [zero for _, zero in used.values()]
    deltas = _backward(found, zeros)
    captured: dict[nn.Module, Captured | None] = {module: None for module, pair in seen.items() if pair is None}
    for (module, (inputs, _)), delta in zip(used.items(), deltas, strict=True):
        captured[module] = Captured(_at_least_single(inputs), _at_least_single(delta))
    return found.detach(), captured


def _backward(found: Tensor, zeros: Sequence[Tensor]) -> list[Tensor]:
    """Gradients of every output with respect to these, (points, outputs, ...)."""
    if not zeros or not found.requires_grad:
        return [zero.detach()[:, None].expand(-1, found.shape[1], *zero.shape[1:]) for zero in zeros]
    last = found.shape[1] - 1
    by_output = []
    for c in range(last + 1):
        # Points do not mix, so the gradient of the sum over points holds that of each.
        chosen = torch.zeros_like(found)
        chosen[:, c] = 1.0
        by_output.append(
            torch.autograd.grad(found, zeros, chosen, retain_graph=c < last, allow_unused=True, materialize_grads=True)
        )
    return [torch.stack(deltas, 1) if last else deltas[0][:, None] for deltas in zip(*by_output, strict=True)]


def _at_least_single(values: Tensor) -> Tensor:
    return values.float() if values.is_floating_point() and values.element_size() < 4 else values


@contextmanager
def _hooked(layers: Sequence[nn.Module], watch: Any) -> Iterator[None]:
    handles = [layer.register_forward_hook(watch, prepend=True, with_kwargs=True) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
