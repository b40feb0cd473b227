"""forecasts_by_twins: forecasts of several recipes, whose twins train in one stack wherever they can share it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.found_forecasts import ForecastCollector, FoundForecasts, Name
from tiltmeter.forecast.route import Twin
from tiltmeter.forecast.twin.asked_recipe import AskedRecipe, families
from tiltmeter.forecast.twin.cut_twins import cut_twins, stacked_twins
from tiltmeter.forecast.twin.forecast_by_twins import forecast_alone, told_by_twins
from tiltmeter.forecast.twin.recipe_block import RecipeBlock, recipe_block
from tiltmeter.forecast.twin.side_by_side import train_side_by_side
from tiltmeter.forecast.twin.twin_task import TwinTask, twin_task
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch

#: Weights that train in one stack at most; with gradients and moments they take half a gigabyte.
MOST_WEIGHTS = 2**25


def forecasts_by_twins(
    model: nn.Module,
    train: GroupedData,
    look: GroupedData | None,
    recipes: Mapping[Name, Recipe],
    route: Twin,
    watch: Watch,
    tell: Callable[[int], None] = lambda done: None,  # noqa: ARG005
) -> FoundForecasts[Name]:
    """The forecast of every recipe, as `forecast_by_twins` gives it; `tell` is called with how many are done.

    Recipes that differ only in weights and in laws of groups and points by weights share their twins, which are cut
    once, and the scores of the untrained network; recipes without interventions only among themselves. Those with
    constant weights train in one stack, those with laws that react in another. Every other recipe is forecast alone:
    `origin.settings["calculation"]` says which.
    """
    task = twin_task(model, train, look, route, watch)
    found, asked = ForecastCollector[Name](), dict[Name, AskedRecipe]()
    for name, recipe in recipes.items():
        with found.refusing(name):
            asked[name] = AskedRecipe.of(recipe, task.train)
    for family in families(asked):
        with found.refusing(*family):
            _forecast_family(task, family, found)
        tell(found.done)
    return found.found(recipes)


def _forecast_family(task: TwinTask, family: Mapping[Name, AskedRecipe], found: ForecastCollector[Name]) -> None:
    cut = cut_twins(task, list(family.values())) if len(family) > 1 else None
    if cut is None or cut.rates is None:
        for name, recipe in family.items():
            with found.refusing(name):
                found.runs[name] = forecast_alone(task, recipe, progress=False)
        return
    shared = stacked_twins(task, cut, next(iter(family.values())).lowered)
    blocks = dict[Name, RecipeBlock]()
    for name, recipe in family.items():
        with found.refusing(name):
            blocks[name] = recipe_block(recipe, task.train, shared.shifts, shared.answers)
    size = sum(p.numel() for twin in cut.twins for p in twin.network.parameters())
    for stack in _stacks(blocks, size):
        for (name, block), run in zip(
            stack.items(), train_side_by_side(task, shared, list(stack.values())), strict=True
        ):
            found.runs[name] = told_by_twins(run, task, cut, block.recipe, together=len(stack))


def _stacks(blocks: Mapping[Name, RecipeBlock], size: int) -> Iterator[dict[Name, RecipeBlock]]:
    """Blocks with constant weights, whose derivatives are known by formulas, and blocks that laws steer.

    A stack has at most so many blocks of this `size` as fit in memory.
    """
    most = max(1, MOST_WEIGHTS // size)
    for steered in (False, True):
        names = [name for name, block in blocks.items() if (block.steering is not None) == steered]
        for first in range(0, len(names), most):
            yield {name: blocks[name] for name in names[first : first + most]}
