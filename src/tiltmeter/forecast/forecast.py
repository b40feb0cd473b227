"""forecast: the group curves of a training that has not happened yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.curves import forecast_measures
from tiltmeter.forecast.initialisations import over_initialisations
from tiltmeter.forecast.inputs import checked_real_steps, looks_of
from tiltmeter.forecast.network_kernels import tangent
from tiltmeter.forecast.question import check_before_work
from tiltmeter.forecast.replicas import averaged
from tiltmeter.forecast.route import Kernel, Twin
from tiltmeter.forecast.twin.forecast_by_twins import forecast_by_twins
from tiltmeter.interventions.data_law import DataLaw
from tiltmeter.recipe.recipe import Recipe, checked_recipe
from tiltmeter.recipe.watch import Watch, checked_watch
from tiltmeter.record import Trajectory
from tiltmeter.training.network_laws import check_needs
from tiltmeter.training.scouting import changed_data


def forecast(
    model: nn.Module | Callable[[], nn.Module],
    train: GroupedData,
    look: GroupedData | None,
    recipe: Recipe,
    *,
    watch: Watch = Watch(),
    route: Kernel | Twin = Kernel(),
    seeds: int | Sequence[int] | None = None,
    progress: bool = True,
) -> Trajectory:
    """Forecast, before training, the curves that a `Probe` would record of this network on the points `look`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 5))
    >>> data = GroupedData(x, np.sign(x[:, 0]), rng.choice(["a", "b"], 400, p=[0.8, 0.2]))
    >>> ahead = forecast(nn.Linear(5, 1), *data.split(0.5), Recipe(lr=0.5, steps=100))
    >>> ahead["error"].sel(time=100, group="a").item() < 0.1
    True

    Early in training a network behaves like its linearisation at the initial weights, which the tangent kernel
    describes. `recipe` is the one given to `train`, with SGD as its optimiser. `watch` says which curves and when.
    `look` holds the held-out points; None sets a fifth of `train` aside. The model is not changed. To forecast several
    recipes for one network, keep its `tangent`.

    The forecast is of *this* network. With `seeds` (how many, or which), `model` is a function that makes one; the
    model of seed s is what it returns after `torch.manual_seed(s)`, and the curves have a dimension `seed`.

    The forecast leaves out the features that the network learns and the noise of small batches. It is good early in
    training, for wide networks and small learning rates. How far it can be trusted is measured on the network and noted
    in `origin.settings["horizon"]`. Work of more than a few seconds shows its progress on stderr, unless `progress` is
    False.
    """
    if not isinstance(route, (Kernel, Twin)):
        raise TypeError(f"`route` should say how to calculate, as Kernel(sample=2500). Found {type(route).__name__}.")
    checked_recipe(recipe)
    forecast_measures(checked_watch(watch))
    if isinstance(train, GroupedData) and isinstance(route, Kernel):
        check_before_work(recipe, train)
        steps = recipe.total_steps(len(train))
        looks_of(watch, steps, watch.read)
        checked_real_steps(route.real_steps, steps)
    alone = progress and seeds is None

    def one(network: nn.Module) -> Trajectory:
        if isinstance(route, Twin):
            found = forecast_by_twins(network, train, look, recipe, route, watch, alone)
            return found if seeds is None else averaged(found)
        data, rest = _without_data_laws(train, recipe)
        kernels = tangent(network, data, look, sample=route.sample, seed=route.seed, read=watch.read, progress=alone)
        found = kernels.forecast(rest, watch=watch, horizon=route.horizon, real_steps=route.real_steps)
        return found if rest is recipe else _told(found, train, recipe)

    if seeds is None:
        return one(model)  # type: ignore[arg-type]  # checked where it enters
    return over_initialisations(model, seeds, one, progress)


def _without_data_laws(train: GroupedData, recipe: Recipe) -> tuple[GroupedData, Recipe]:
    """Return the data as the recipe's laws make them, and the recipe without these laws."""
    laws = [law for law in recipe.interventions if isinstance(law, DataLaw)]
    if not laws or not isinstance(train, GroupedData):
        return train, recipe
    check_needs(tuple(laws), train, None)
    rest = tuple(law for law in recipe.interventions if not isinstance(law, DataLaw))
    return changed_data(laws, train).data, replace(recipe, interventions=rest)


def _told(found: Trajectory, train: GroupedData, recipe: Recipe) -> Trajectory:
    """Return the forecast with the data and the recipe that the user gave."""
    settings = {**found.origin.settings, "train": train.to_json(), "recipe": recipe.to_json()}
    return Trajectory(dict(found), found.clock, replace(found.origin, settings=settings), found.diverged)
