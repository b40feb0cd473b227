"""Capture: the inputs of layers and the gradients at their outputs, from one forward pass and one backward per
output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tiltmeter.modules.forward import Read, scores


class Tapped(NamedTuple):
    """The input of a layer, and a zero that was added to its output."""

    inputs: Tensor
    zero: Tensor


def placed(model: nn.Module, x: Tensor) -> Tensor:
    """The points on the device of the model's parameters, in their precision."""
    first = next(model.parameters())
    floating = next((p.dtype for p in model.parameters() if p.is_floating_point()), None)
    kind = floating if floating is not None and x.is_floating_point() else x.dtype
    return x.detach().to(first.device, kind)


def capture(
    model: nn.Module, layers: Sequence[nn.Module], x: Tensor, read: Read | None, start: int = 0
) -> tuple[Tensor, dict[nn.Module, tuple[Tensor, Tensor] | None]]:
    """Scores (points, outputs), and for each layer its input and the gradients at its output.

    Gradients are (points, outputs, ...). The value is None for a layer that was called twice or not on the points; a
    layer that was not called is left out. `start` is the number of the first point, for messages.
    """
    seen: dict[nn.Module, Tapped | None] = {}

    def watch(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        fed = [*args, *kwargs.values()]
        usual = len(fed) == 1 and isinstance(fed[0], Tensor) and isinstance(output, Tensor)
        if module in seen or not usual:
            seen[module] = None
            return None
        # A zero is added because the next layer may change the output in place, but never the zero.
        tapped = Tapped(fed[0].detach(), torch.zeros_like(output, requires_grad=True))
        seen[module] = tapped if _on_points(tapped, len(x)) else None
        return output + tapped.zero

    with _hooked(layers, watch), torch.enable_grad():
        _, found = next(scores(model, x, read, len(x)))
        found = found.reshape(len(x), -1)
    check_finite(found, start)
    used = {module: tapped for module, tapped in seen.items() if tapped is not None}
    deltas = _backward(found, [tapped.zero for tapped in used.values()], len(x))
    captured: dict[nn.Module, tuple[Tensor, Tensor] | None] = dict.fromkeys(seen)
    for (module, tapped), delta in zip(used.items(), deltas, strict=True):
        captured[module] = _at_least_single(_by_point(tapped.inputs, len(x))), _at_least_single(delta)
    return found.detach(), captured


def check_finite(found: Tensor, start: int) -> None:
    """Raise an error that names the first point whose score is not finite."""
    bad = ~torch.isfinite(found).reshape(len(found), -1).all(1)
    if bad.any():
        i = int(bad.int().argmax())
        raise ValueError(f"Scores should be finite. Found {found[i].tolist()} at point {start + i}.")


def _on_points(pair: Tapped, points: int) -> bool:
    """Whether the input of a layer has one row per point, or the same number of rows for every point."""
    inputs, zero = pair
    return inputs.ndim > 0 and len(inputs) == len(zero) >= points and len(inputs) % points == 0


def _by_point(values: Tensor, points: int) -> Tensor:
    """Rows that belong to the same point, moved to a separate dimension."""
    return values if len(values) == points else values.reshape(points, -1, *values.shape[1:])


def _backward(found: Tensor, zeros: Sequence[Tensor], points: int) -> list[Tensor]:
    """Gradients of every output with respect to these tensors, (points, outputs, ...)."""
    if not zeros or not found.requires_grad:
        by_point = [_by_point(zero.detach(), points) for zero in zeros]
        return [zero[:, None].expand(-1, found.shape[1], *zero.shape[1:]) for zero in by_point]
    # Points do not interact, so the gradient of the sum over points contains that of each.
    with torch.enable_grad():
        sums = found.sum(0).unbind()
    last = len(sums) - 1
    by_output = [
        torch.autograd.grad(output, zeros, retain_graph=c < last, allow_unused=True, materialize_grads=True)
        for c, output in enumerate(sums)
    ]
    return [
        torch.stack([_by_point(delta, points) for delta in deltas], 1)
        if last
        else _by_point(deltas[0], points)[:, None]
        for deltas in zip(*by_output, strict=True)
    ]


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
