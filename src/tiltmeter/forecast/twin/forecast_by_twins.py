"""forecast_by_twins: the curves of a training, from narrow twins of the network trained in its place."""

from __future__ import annotations

from typing import Any

from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.laws import needs_points
from tiltmeter.forecast.replicas import told_by_replicas
from tiltmeter.forecast.route import Twin
from tiltmeter.forecast.twin.asked_recipe import AskedRecipe
from tiltmeter.forecast.twin.cut import Cutter
from tiltmeter.forecast.twin.cut_twins import CutTwins, cut_twins, stacked_twins
from tiltmeter.forecast.twin.one_by_one import train_one_by_one
from tiltmeter.forecast.twin.places import by_place
from tiltmeter.forecast.twin.recipe_block import recipe_block
from tiltmeter.forecast.twin.side_by_side import train_side_by_side
from tiltmeter.forecast.twin.stacked_rates import Rates
from tiltmeter.forecast.twin.twin_task import TwinTask, twin_task
from tiltmeter.forecast.twin.twins import shifted, shifted_anywhere
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory


def forecast_by_twins(
    model: nn.Module,
    train: GroupedData,
    look: GroupedData | None,
    recipe: Recipe,
    route: Twin,
    watch: Watch,
    progress: bool = True,
    cutter: Cutter | None = None,
) -> Trajectory:
    """The curves of every twin, in a dimension `seed` where there are several; the model is not changed.

    `cutter` is that of a choice, where the network was traced for it.
    """
    task = twin_task(model, train, look, route, watch, cutter)
    return forecast_alone(task, AskedRecipe.of(recipe, task.train), progress)


def forecast_alone(task: TwinTask, recipe: AskedRecipe, progress: bool) -> Trajectory:
    """The curves of one recipe, by twins of its own."""
    cut = cut_twins(task, [recipe])
    if cut.rates is None:
        found = _one_by_one(task, cut, recipe.asked, progress)
    else:
        shared = stacked_twins(task, cut, recipe.lowered)
        (found,) = train_side_by_side(task, shared, [recipe_block(recipe, task.train, shared.shifts, shared.answers)])
    return told_by_twins(found, task, cut, recipe, together=1)


def told_by_twins(
    found: Trajectory, task: TwinTask, cut: CutTwins, recipe: AskedRecipe, together: int, networks: int = 1
) -> Trajectory:
    """The curves as a forecast of the user's training.

    One stack trained the twins of `together` recipes, or of so many `networks`.
    """
    account: dict[str, Any] = {
        "cut": {name: list(counts) for name, counts in cut.twins[0].cut.cut.items()},
        "whole": list(cut.twins[0].cut.whole),
        "parameters": sum(p.numel() for p in cut.twins[0].network.parameters()),
        "order": "the run's own" if recipe.lowered.order is not None else "one for every twin",
        "trained": "one by one" if cut.rates is None else "side by side",
        "recipes_together": together,
        "networks_together": networks,
    }
    return told_by_replicas(found, task.own, task.train, task.look, recipe.asked, task.watch, task.route, account)


def _one_by_one(task: TwinTask, cut: CutTwins, asked: Recipe, progress: bool) -> Trajectory:
    recipes = [twin.recipe(asked, asked.total_steps(len(task.train)), cut.kind) for twin in cut.twins]
    own_points = needs_points(asked)
    networks: list[nn.Module] = [
        shifted_anywhere(cut.wide, twin) if own_points else shifted(cut.wide, twin) for twin in cut.twins
    ]
    places = (task.train, task.look) if own_points else by_place(task.train, task.look)
    return train_one_by_one(networks, recipes, cut.seeds, *places, task.watch, progress, _rates(task, cut, asked))


def _rates(task: TwinTask, cut: CutTwins, asked: Recipe) -> list[Rates | None] | None:
    """The rates of every twin where its steps can be taken by formulas; None for the network itself."""
    if cut.twins[0].whole:
        return None
    if cut.kind is None or asked.clip is not None or asked.interventions:
        return [None] * len(cut.twins)
    return [Rates(twin, asked, cut.kind, asked.total_steps(len(task.train))) for twin in cut.twins]
