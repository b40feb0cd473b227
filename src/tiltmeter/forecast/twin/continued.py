"""Continued: the rest of a training, from twins cut out of the network as it is now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.begun import Begun
from tiltmeter.forecast.inputs import checked_classes
from tiltmeter.forecast.replica_seeds import replica_seeds
from tiltmeter.forecast.replicas import told_by_replicas
from tiltmeter.forecast.route import Twin
from tiltmeter.forecast.twin.cut import Cutter
from tiltmeter.forecast.twin.one_by_one import train_one_by_one
from tiltmeter.forecast.twin.places import by_place
from tiltmeter.forecast.twin.representative import sample_of
from tiltmeter.forecast.twin.scaled_recipe import scaled_recipe
from tiltmeter.forecast.twin.taken_up import kept_places, remembered
from tiltmeter.forecast.twin.twins import ScaledTwin, scaled, shifted
from tiltmeter.forecast.twin.untrained import Untrained
from tiltmeter.measures.answers import trial_scores
from tiltmeter.passes.forward import like_weights
from tiltmeter.passes.untouched import untouched
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.sampling import Sampling
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory, at


def twins_from(
    own: nn.Module,
    train: GroupedData,
    look: GroupedData,
    recipe: Recipe,
    route: Twin,
    watch: Watch,
    begun: Begun,
) -> Trajectory:
    """The curves of twins of the network as it is, from this step to the last; they begin at its own outputs.

    What the optimiser remembers is cut with the weights. Weights that were learned are cut as if they were still
    random, which is exact for one hidden layer and an approximation for more.
    """
    x = tuple(like_weights(own, data.tensors()[0]) for data in (train, look))
    with untouched(own):
        trial = trial_scores(own, x[0][:8], watch.read)
    outputs = trial.shape[1] if trial.ndim == 2 else 1
    for data in (train, look):
        checked_classes(data, outputs)
    total = recipe.total_steps(len(train))
    sampling = recipe.batches(train)
    count = 1 if route.share == 1.0 and recipe.order is not None else route.count
    seeds = [route.seed] * count if recipe.order is not None else replica_seeds(route.seed, count)
    looks = [step for step in sorted({begun.step, *watch.when.steps(total), total}) if step >= begun.step]
    rest = replace(watch, when=at([step - begun.step for step in looks]))
    twins, networks, recipes = list[ScaledTwin](), list[nn.Module](), list[Recipe]()
    wide = Untrained(own, train, (x[0], x[1]), watch.read)
    cutter = Cutter(own, sample_of(x[0]), watch.read)
    for number in range(len(seeds)):
        twin = scaled(cutter(route.share, route.seed + number), outputs)
        places = kept_places(own, x[0][:2], twin.cut.units, watch.read)
        twins.append(twin)
        networks.append(shifted(wide, twin))
        recipes.append(_rest(recipe, own, twin, places, begun, total, Later(sampling, begun.step)))
    ahead = None if twins[0].whole else [None] * len(twins)  # the optimiser goes on from what it remembers
    found = train_one_by_one(networks, recipes, seeds, *by_place(train, look), rest, False, ahead)
    account: dict[str, Any] = {
        "cut": {name: list(counts) for name, counts in twins[0].cut.cut.items()},
        "whole": list(twins[0].cut.whole),
        "from_step": begun.step,
    }
    return told_by_replicas(_later(found, begun.step), own, train, look, recipe, watch, route, account)


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
    begun: Begun,
    total: int,
    batches: Sampling,
) -> Recipe:
    """The recipe of a twin from here to the end."""
    scaled = scaled_recipe(recipe, twin.network, twin.scales, twin.kind(recipe), total, begun)
    kept = remembered(begun, recipe, own, places, twin.scale)
    names = [name for name, _ in twin.network.named_parameters()]
    order = recipe.order if isinstance(recipe.order, int) else None
    make = partial(_resumed, scaled.make_optimiser, names, kept)
    free: dict[str, Any] = {"proportions": None, "epochs": None, "steps": total - begun.step}
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
