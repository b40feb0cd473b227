"""forecasts_of_networks: forecasts of several initial weights of one architecture, whose twins train in one stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import xarray as xr
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.route import Twin
from tiltmeter.forecast.twin.asked_recipe import AskedRecipe
from tiltmeter.forecast.twin.cut_twins import CutTwins, cut_twins, stacked_twins
from tiltmeter.forecast.twin.forecast_by_twins import forecast_alone, told_by_twins
from tiltmeter.forecast.twin.recipe_block import recipe_block
from tiltmeter.forecast.twin.side_by_side import StackedTwins, train_side_by_side
from tiltmeter.forecast.twin.twin_task import twin_task
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory


def forecasts_of_networks(
    models: Sequence[nn.Module],
    train: GroupedData,
    look: GroupedData | None,
    recipe: Recipe,
    route: Twin,
    watch: Watch,
) -> list[Trajectory]:
    """The forecast of every network, as `forecast_by_twins` gives it but without the points.

    Twins that can train side by side do so, those of all networks at once, if these are of one shape.
    """
    watch = replace(watch, points=False)
    tasks = [twin_task(model, train, look, route, watch) for model in models]
    asked = AskedRecipe.of(recipe, tasks[0].train)
    cuts = [cut_twins(task, [asked]) for task in tasks] if len(tasks) > 1 else []
    if not cuts or cuts[0].rates is None or len({_shape(cut) for cut in cuts}) > 1:
        return [forecast_alone(task, asked, progress=False) for task in tasks]
    together = _joined([stacked_twins(task, cut, asked.lowered) for task, cut in zip(tasks, cuts, strict=True)])
    block = recipe_block(asked, tasks[0].train, together.shifts, together.answers)
    (found,) = train_side_by_side(tasks[0], together, [block])
    return [
        told_by_twins(_of_network(found, number, cut), task, cut, asked, together=1, networks=len(tasks))
        for number, (task, cut) in enumerate(zip(tasks, cuts, strict=True))
    ]


def _shape(cut: CutTwins) -> tuple[object, ...]:
    """Equal for twins that fit into one stack and take their steps alike."""
    network, scales = cut.twins[0].network, cut.twins[0].scales
    sizes = tuple((name, tuple(p.shape), p.requires_grad) for name, p in network.named_parameters())
    return (*sizes, *scales.items(), tuple(type(module) for module in network.modules()), cut.rates is None)


def _joined(parts: Sequence[StackedTwins]) -> StackedTwins:
    """The twins of all networks, network by network."""
    return StackedTwins(
        twins=[twin for part in parts for twin in part.twins],
        shifts=[shift for part in parts for shift in part.shifts],
        rates=parts[0].rates,
        seeds=[seed for part in parts for seed in part.seeds],
        answers=parts[0].answers,
    )


def _of_network(found: Trajectory, number: int, cut: CutTwins) -> Trajectory:
    """The curves of the twins of one network, numbered from 0 where there are several."""
    count = len(cut.twins)
    seeds = tuple(range(count)) if count > 1 else ()

    def own(curve: xr.DataArray) -> xr.DataArray:
        part = curve.isel(seed=slice(number * count, (number + 1) * count))
        return part.assign_coords(seed=list(seeds)) if seeds else part.isel(seed=0, drop=True)

    ended = None if found.diverged is None else own(found.diverged)
    if ended is not None and ended.isnull().all():
        ended = None
    curves = {name: own(curve) for name, curve in found.items()}
    return Trajectory(curves, found.clock, replace(found.origin, seeds=seeds), ended)
