"""forecasts: those of several recipes for one network, with the work shared where the route can."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.curves import forecast_measures
from tiltmeter.forecast.forecast import forecast
from tiltmeter.forecast.found_forecasts import ForecastCollector, FoundForecasts, Name
from tiltmeter.forecast.route import Coordinates, Kernel, Twin
from tiltmeter.forecast.twin.forecasts_by_twins import forecasts_by_twins
from tiltmeter.recipe.recipe import Recipe, checked_recipe
from tiltmeter.recipe.watch import Watch, checked_watch


def forecasts(
    model: nn.Module,
    train: GroupedData,
    look: GroupedData | None,
    recipes: Mapping[Name, Recipe],
    *,
    watch: Watch,
    route: Kernel | Coordinates | Twin,
    tell: Callable[[int], None] = lambda done: None,  # noqa: ARG005
) -> FoundForecasts[Name]:
    """What `forecast` gives for each recipe; `tell` is called with how many are done.

    >>> import numpy as np, torch
    >>> x = np.random.default_rng(0).normal(size=(200, 5)).astype("float32")
    >>> data = GroupedData(x, np.sign(x[:, 0]), np.where(x[:, 1] > 1, "rare", "common"))
    >>> network = nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, 1))
    >>> recipes = {weight: Recipe(lr=0.1, steps=20, weights={"rare": weight}) for weight in (1.0, 3.0)}
    >>> found = forecasts(network, data, data, recipes, watch=Watch(), route=Twin())
    >>> found.runs[3.0].origin.settings["calculation"]["recipes_together"]
    2
    """
    forecast_measures(checked_watch(watch))
    for recipe in recipes.values():
        checked_recipe(recipe)
    if isinstance(route, Twin):
        return forecasts_by_twins(model, train, look, recipes, route, watch, tell)
    found = ForecastCollector[Name]()
    for name, recipe in recipes.items():
        with found.refusing(name):
            found.runs[name] = forecast(model, train, look, recipe, watch=watch, route=route, progress=False)
        tell(found.done)
    return found.found(recipes)
