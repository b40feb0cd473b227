"""Capture: what layers were fed and the gradients at their outputs, by one forward pass and a backward per output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tiltmeter.passes.forward import Read, scores
from tiltmeter.tangent.rules import OPENED


class Tapped(NamedTuple):
    """What a layer was fed, and a zero that was added to what it returned."""

    inputs: Tensor
    zero: Tensor


def placed(model: nn.Module, x: Tensor) -> Tensor:
    """The points where the model's parameters are, in their precision."""
    first = next(model.parameters())
    floating = next((p.dtype for p in model.parameters() if p.is_floating_point()), None)
    kind = floating if floating is not None and x.is_floating_point() else x.dtype
    return x.detach().to(first.device, kind)


def capture(
    model: nn.Module, layers: Sequence[nn.Module], x: Tensor, read: Read | None, start: int = 0
) -> tuple[Tensor, dict[nn.Module, list[Tensor] | None]]:
    """Scores (points, outputs), and for each layer [what it was fed, gradients at what it returned, ...] by tap.

    Gradients are (points, outputs, ...). None stands for a layer that was called twice or not on the points, and a
    layer that was not called is left out. `start` is the number of the first point, for messages.
    """
    seen: dict[nn.Module, list[Tapped] | None] = {}

    def watch(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        if module in seen:
            seen[module] = None
            return None
        taps: list[Tapped] = []

        def tap(inputs: Tensor, returned: Tensor) -> Tensor:
            # A zero is added, since what was returned may be changed in place by the next layer; the zero never is.
            zero = torch.zeros_like(returned, requires_grad=True)
            taps.append(Tapped(inputs.detach(), zero))
            return returned + zero

        if type(module) in OPENED:
            output = OPENED[type(module)](module, args, kwargs, output, tap)
        else:
            fed = [*args, *kwargs.values()]
            usual = len(fed) == 1 and isinstance(fed[0], Tensor) and isinstance(output, Tensor)
            output = tap(fed[0], output) if usual else None
        on_points = all(len(inputs) == len(zero) == len(x) for inputs, zero in taps)
        seen[module] = taps if output is not None and on_points else None
        return output

    with _hooked(layers, watch), torch.enable_grad():
        _, found = next(scores(model, x, read, len(x)))
        found = found.reshape(len(x), -1)
    check_finite(found, start)
    used = [(module, inputs, zero) for module, taps in seen.items() for inputs, zero in taps or ()]
    deltas = _backward(found, [zero for _, _, zero in used])
    captured: dict[nn.Module, list[Tensor] | None] = {m: None if taps is None else [] for m, taps in seen.items()}
    for (module, inputs, _), delta in zip(used, deltas, strict=True):
        pairs = captured[module]
        assert pairs is not None
        pairs += [_at_least_single(inputs), _at_least_single(delta)]
    return found.detach(), captured


def check_finite(found: Tensor, start: int) -> None:
    """Name the first point whose score is not a finite number."""
    bad = ~torch.isfinite(found).reshape(len(found), -1).all(1)
    if bad.any():
        i = int(bad.int().argmax())
        raise ValueError(f"Scores should be finite. Found {found[i].tolist()} at point {start + i}.")


def _backward(found: Tensor, zeros: Sequence[Tensor]) -> list[Tensor]:
    """Gradients of every output with respect to these, (points, outputs, ...)."""
    if not zeros or not found.requires_grad:
        return [zero.detach()[:, None].expand(-1, found.shape[1], *zero.shape[1:]) for zero in zeros]
    # Points do not mix, so the gradient of the sum over points holds that of each.
    with torch.enable_grad():
        sums = found.sum(0).unbind()
    last = len(sums) - 1
    by_output = [
        torch.autograd.grad(output, zeros, retain_graph=c < last, allow_unused=True, materialize_grads=True)
        for c, output in enumerate(sums)
    ]
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
