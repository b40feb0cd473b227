"""Continued: the rest of a training, from copies of the network as it is now."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.task import ForecastTask, copy_seeds
from tiltmeter.forecast.twin.cut import Cutter, Units
from tiltmeter.forecast.twin.rule import Scale
from tiltmeter.forecast.twin.twins import (
    ResumeState,
    ScaledTwin,
    by_place,
    scaled,
    scaled_recipe,
    shifted,
    train_twins,
)
from tiltmeter.forecast.twin.untrained import Untrained
from tiltmeter.modules.forward import Read
from tiltmeter.modules.untouched import deep_copy
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.sampling import Sampling
from tiltmeter.record import Trajectory, at

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
    state: ResumeState,
    recipe: Recipe,
    model: nn.Module,
    places: dict[str, Tensor],
    scale: Callable[[str], Scale],
) -> dict[str, dict[str, Any]]:
    """What the optimiser of the network remembers, by parameter, at these places and in the units of the twin.

    Gradients of a twin are larger by the rule's factor. A memory of gradients grows with it, a memory of their squares
    with its square: which of them it is, is seen from the optimiser itself.
    """
    power = powers(recipe.make_optimiser, [p for p in model.parameters() if p.requires_grad])
    found: dict[str, dict[str, Any]] = {}
    for name, parameter in model.named_parameters():
        if parameter not in state.optimiser.state or name not in places:
            continue
        factor, where = scale(name).gradient, places[name]
        found[name] = {
            key: value.flatten()[where] * factor ** power(key)
            if isinstance(value, Tensor) and value.shape == parameter.shape and value.numel() > 1
            else (value.clone() if isinstance(value, Tensor) else value)
            for key, value in state.optimiser.state[parameter].items()
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


def rest_by_copies(
    task: ForecastTask, share: float, count: int, seed: int, state: ResumeState
) -> tuple[Trajectory, dict[str, Any]]:
    """The curves of copies of the network as it is, from this step to the last; they begin at its own outputs.

    Copies keep a `share` of the units; with all of them a copy is the network itself. What the optimiser remembers is
    cut with the weights. Weights that were learned are cut as if they were still random, which is exact for one hidden
    layer and an approximation for more.
    """
    own, recipe, watch, train = task.model, task.recipe, task.watch, task.train
    total, sampling = task.steps, recipe.batches(train)
    count = 1 if share == 1.0 and task.order_known else count
    seeds = [seed] * count if task.order_known else copy_seeds(seed, count)
    evaluations = [step for step in sorted({state.step, *task.evaluations}) if step >= state.step]
    rest = replace(watch, when=at([step - state.step for step in evaluations]))
    twins, networks, recipes = list[ScaledTwin](), list[nn.Module](), list[Recipe]()
    wide = Untrained(own, train, task.x, watch.read)
    for number in range(len(seeds)):
        twin = scaled(task.cut(share, seed + number), task.outputs)
        places = kept_places(own, task.x[0][:2], twin.cut.units, watch.read)
        twins.append(twin)
        networks.append(shifted(wide, twin))
        recipes.append(_rest(recipe, own, twin, places, state, total, Later(sampling, state.step)))
    runs = train_twins(networks, recipes, seeds, *by_place(train, task.held_out), rest, False)
    account: dict[str, Any] = {
        "cut": {name: list(counts) for name, counts in twins[0].cut.cut.items()},
        "whole": list(twins[0].cut.whole),
        "order": "the run's own" if task.order_known else "one for every copy",
        "from_step": state.step,
    }
    return _later(runs, state.step), account


@dataclass(frozen=True)
class Later(Sampling):
    """The batches of another sampling from a step on."""

    inner: Sampling
    first: int

    def batches(self, data: GroupedData, batch: int) -> int:  # noqa: ARG002
        return 1

    def stretch(self, data: GroupedData, batch: int, seed: int, number: int) -> np.ndarray:
        return self.inner.batch(data, batch, seed, self.first + number)

    def in_turn(self, data: GroupedData, batch: int, seed: int) -> Callable[[int], np.ndarray]:
        places = self.inner.in_turn(data, batch, seed)
        return lambda step: places(self.first + step)


def _rest(
    recipe: Recipe,
    own: nn.Module,
    twin: ScaledTwin,
    places: dict[str, Tensor],
    state: ResumeState,
    total: int,
    batches: Sampling,
) -> Recipe:
    """The recipe of a twin from here to the end."""
    scaled = scaled_recipe(recipe, twin.network, twin.scales, twin.kind(recipe), total, state)
    kept = remembered(state, recipe, own, places, twin.scale)
    names = [name for name, _ in twin.network.named_parameters()]
    order = recipe.order if isinstance(recipe.order, int) else None
    make = partial(_resumed, scaled.make_optimiser, names, kept)
    free: dict[str, Any] = {"proportions": None, "epochs": None, "steps": total - state.step}
    return replace(scaled, optimiser=make, order=order, sampling=batches, **free)


def _resumed(make: Any, names: list[str], kept: Mapping[str, Mapping[str, Any]], parameters: Iterable[Any]) -> Any:
    """The optimiser of a twin with the memory of its network's."""
    given = list(parameters)
    made = make(given)
    for name, parameter in zip(names, given, strict=True):
        if name in kept:
            made.state[parameter] = {
                key: torch.empty_like(parameter, requires_grad=False).copy_(value)  # in the order of its numbers
                if isinstance(value, Tensor) and value.shape == parameter.shape
                else value
                for key, value in kept[name].items()
            }
    return made


def _later(found: Trajectory, step: int) -> Trajectory:
    """The same curves on the clock of the run."""
    moved = {name: curve.assign_coords(time=curve["time"] + step) for name, curve in found.items()}
    points = {name: found.points[name] for name in found.points}
    points = {name: array.assign_coords(time=array["time"] + step) for name, array in points.items()}
    ended = None if found.diverged is None else found.diverged + step
    return Trajectory(moved, found.clock, found.origin, ended, points=points)
