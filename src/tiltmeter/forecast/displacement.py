"""Displacement: how far the weights move in a forecast, and what the network itself says there."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, jvp

from tiltmeter.passes.forward import Read, flat_scores
from tiltmeter.passes.untouched import untouched

#: Points that go through the network together.
CHUNK = 512


def trained(model: nn.Module) -> dict[str, Tensor]:
    """The weights that training moves, by name."""
    return {name: value.detach() for name, value in model.named_parameters() if value.requires_grad}


def radial(model: nn.Module, x: Tensor, read: Read | None) -> np.ndarray:
    """J w0, the change of every output per relative growth of all weights: one row per point."""
    weights = trained(model)
    return _along(model, x, weights, weights, read)[1]


def _along(
    model: nn.Module, x: Tensor, weights: dict[str, Tensor], direction: dict[str, Tensor], read: Read | None
) -> tuple[np.ndarray, np.ndarray]:
    """Outputs at these weights and their derivative along a direction, (points, outputs) each."""
    like = next(iter(weights.values()))
    found: list[tuple[Tensor, Tensor]] = []
    with untouched(model):
        for start in range(0, len(x), CHUNK):
            part = x[start : start + CHUNK].to(like.device)
            part = part.to(like.dtype) if part.is_floating_point() else part

            def outputs(given: dict[str, Tensor], part: Tensor = part) -> Tensor:
                return flat_scores(functional_call(model, given, (part,)), len(part), read)

            found.append(jvp(outputs, (weights,), (direction,)))
    value, slope = (torch.cat(parts).double().cpu().numpy() for parts in zip(*found, strict=True))
    return value.reshape(len(x), -1), slope.reshape(len(x), -1)
