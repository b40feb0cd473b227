"""Taken up: what an optimiser remembers of a wide network, cut and scaled for its twin."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tiltmeter.forecast.begun import Begun
from tiltmeter.forecast.twin.cut import Cutter, Units
from tiltmeter.forecast.twin.rule import Scale
from tiltmeter.passes.deep_copy import deep_copy
from tiltmeter.passes.forward import Read
from tiltmeter.recipe.recipe import Recipe

#: How the memory of an optimiser is tried: gradients of these sizes, so many steps.
SMALL, LARGE, STEPS = 1.0, 4.0, 3


def kept_places(model: nn.Module, x: Tensor, units: Units, read: Read | None) -> dict[str, Tensor]:
    """For every parameter of a twin of these units, the places of its numbers in the flattened one of the network.

    >>> import numpy as np
    >>> found = kept_places(nn.Sequential(nn.Linear(2, 9), nn.Linear(9, 1)), torch.zeros(2, 2), (np.arange(8),), None)
    >>> found["0.weight"].shape, found["1.weight"].tolist()
    (torch.Size([8, 2]), [[0, 1, 2, 3, 4, 5, 6, 7]])

    A copy of the network whose weights are their own places is cut to the same units.
    """
    numbered = deep_copy(model).double()
    with torch.no_grad():
        for parameter in numbered.parameters():
            if parameter.is_floating_point():
                parameter.copy_(torch.arange(parameter.numel(), dtype=parameter.dtype).view(parameter.shape))
    points = x.double() if x.is_floating_point() else x
    found = Cutter(numbered, points, read).keep(units).model
    return {name: parameter.detach().round().long() for name, parameter in found.named_parameters()}


def remembered(
    begun: Begun, recipe: Recipe, model: nn.Module, places: dict[str, Tensor], scale: Callable[[str], Scale]
) -> dict[str, dict[str, Any]]:
    """What the optimiser of the network remembers, by parameter, at these places and in the units of the twin.

    Gradients of a twin are larger by the rule's factor. A memory of gradients grows with it, a memory of their squares
    with its square: which of them it is, is seen from the optimiser itself.
    """
    power = powers(recipe.make_optimiser, [p for p in model.parameters() if p.requires_grad])
    found: dict[str, dict[str, Any]] = {}
    for name, parameter in model.named_parameters():
        if parameter not in begun.optimiser.state or name not in places:
            continue
        factor, where = scale(name).gradient, places[name]
        found[name] = {
            key: value.flatten()[where] * factor ** power(key)
            if isinstance(value, Tensor) and value.shape == parameter.shape and value.numel() > 1
            else (value.clone() if isinstance(value, Tensor) else value)
            for key, value in begun.optimiser.state[parameter].items()
        }
    return found


def powers(make: Callable[[Sequence[Tensor]], Any], like: Sequence[Tensor]) -> Callable[[str], int]:
    """With which power of the gradient's size each memory of an optimiser grows, from a trial on a few numbers.

    >>> power = powers(torch.optim.Adam, [torch.zeros(3, 2)])
    >>> power("exp_avg"), power("exp_avg_sq"), power("step")
    (1, 2, 0)
    """

    def after(size: float) -> dict[str, float]:
        given = [torch.zeros(min(2, max(1, one.numel())), dtype=torch.float64, requires_grad=True) for one in like]
        made = make(given)
        draw = torch.Generator().manual_seed(0)
        for _ in range(STEPS):
            for tried in given:
                tried.grad = size * (1.0 + torch.rand(tried.shape, generator=draw, dtype=torch.float64))
            made.step()
        found: dict[str, float] = {}
        for state in made.state.values():
            for key, value in state.items():
                found[key] = found.get(key, 0.0) + (float(value.abs().sum()) if isinstance(value, Tensor) else 0.0)
        return found

    small, large = after(SMALL), after(LARGE)
    return lambda key: round(math.log(large[key] / small[key], LARGE / SMALL)) if small.get(key) else 0
