"""forecast_by_kernel: the curves of a training from the tangent kernel of a sample of its points."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.inputs import checked_data, checked_real_steps, looks_of, say_held_out
from tiltmeter.forecast.kernel.network_kernels import tangent
from tiltmeter.forecast.kernel.question import check_before_work
from tiltmeter.forecast.replicas import route_to_json
from tiltmeter.forecast.route import Kernel
from tiltmeter.interventions.data_law import DataLaw
from tiltmeter.recipe.order import GivenOrder
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory
from tiltmeter.training.network_laws import check_needs
from tiltmeter.training.scouting import changed_data


def forecast_by_kernel(
    model: nn.Module,
    train: GroupedData,
    look: GroupedData | None,
    recipe: Recipe,
    route: Kernel,
    watch: Watch,
    progress: bool = True,
) -> Trajectory:
    """The curves of the linearised network; an order of batches says which points count, and how much."""
    given, asked = train, recipe
    if isinstance(train, GroupedData):
        check_before_work(recipe, train)
        steps = recipe.total_steps(len(train))
        looks_of(watch, steps, watch.read)
        checked_real_steps(route.real_steps, steps)
        train, asked = _without_data_laws(train, recipe)
        if recipe.order is not None:
            held_out = look is None
            train, look = checked_data(train, look)
            if held_out:
                say_held_out()
            train, asked = shown(train, asked)
    kernels = tangent(model, train, look, sample=route.sample, seed=route.seed, read=watch.read, progress=progress)
    found = kernels.forecast(asked, watch=watch, horizon=route.horizon, real_steps=route.real_steps)
    settings: dict[str, Any] = {**found.origin.settings, "recipe": recipe.to_json(), "route": route_to_json(route)}
    if train is not given:  # the user's own data, not those that laws and orders made of them
        settings["train"] = given.to_json()
    origin = replace(found.origin, settings=settings)
    return Trajectory(dict(found), found.clock, origin, found.diverged, found.evaluate, found.points)


def shown(train: GroupedData, recipe: Recipe) -> tuple[GroupedData, Recipe]:
    """The points that this order shows, each weighted by how often, and the recipe without the order.

    An order that shows every point as often as any other changes nothing. Nor does a seed that goes through the data at
    least once: the rest of its last epoch is small.
    """
    steps, size = recipe.total_steps(len(train)), recipe.batch_size(len(train))
    sampling = recipe.batches(train)
    drawn = recipe.drawn is not None or recipe.sampling is not None
    free = replace(recipe, order=None, batch=size, steps=steps, epochs=None)
    if not isinstance(recipe.order, GivenOrder) and (drawn or steps * size >= len(train)):
        return train, free
    each = sampling.in_turn(train, size, recipe.batch_seed(0))
    places = np.concatenate([each(step) for step in range(steps)])
    counts = np.bincount(places, minlength=len(train))
    if np.ptp(counts) == 0:
        return train, free
    seen = np.flatnonzero(counts)
    part = train.take(seen)
    weights = counts[seen] / counts[seen].mean()
    own = weights if part.weights is None else weights * part.weights
    missing = [group for group, count in part.sizes.items() if not count]
    if missing:
        raise ValueError(
            f"`order` should show points of every group to the kernel. Found none of group {missing[0]!r}: routes Twin "
            "and Coordinates take it."
        )
    return part.with_weights(own), free


def _without_data_laws(train: GroupedData, recipe: Recipe) -> tuple[GroupedData, Recipe]:
    """Return the data as the recipe's laws make them, and the recipe without these laws."""
    laws = [law for law in recipe.interventions if isinstance(law, DataLaw)]
    if not laws or not isinstance(train, GroupedData):
        return train, recipe
    check_needs(tuple(laws), train, None)
    rest = tuple(law for law in recipe.interventions if not isinstance(law, DataLaw))
    return changed_data(laws, train).data, replace(recipe, interventions=rest)
