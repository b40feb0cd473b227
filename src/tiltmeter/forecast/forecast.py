"""forecast: the group curves of a training that has not happened yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.choice import Choice, Route, choose
from tiltmeter.forecast.coordinates.forecast_by_coordinates import forecast_by_coordinates
from tiltmeter.forecast.curves import forecast_measures
from tiltmeter.forecast.initialisations import over_initialisations
from tiltmeter.forecast.kernel.forecast_by_kernel import forecast_by_kernel
from tiltmeter.forecast.replicas import averaged, noted
from tiltmeter.forecast.route import Coordinates, Kernel, Twin
from tiltmeter.forecast.twin.forecast_by_twins import forecast_by_twins
from tiltmeter.forecast.twin.forecasts_of_networks import forecasts_of_networks
from tiltmeter.recipe.recipe import Recipe, checked_recipe
from tiltmeter.recipe.watch import Watch, checked_watch
from tiltmeter.record import Trajectory


def forecast(
    model: nn.Module | Callable[[], nn.Module],
    train: GroupedData,
    look: GroupedData | None,
    recipe: Recipe,
    *,
    watch: Watch = Watch(),
    route: Route | None = None,
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

    `recipe` is the one given to `train`; `watch` says which curves and when. `look` holds the held-out points; None
    sets a fifth of `train` aside. The model is not changed. `route` says how to calculate: `Kernel()`, `Coordinates()`
    or `Twin()` of `tm.routes`. Without it, the best that knows the recipe and is affordable is taken, and
    `origin.settings["route"]` names it; `tm.routes.chosen` tells which, why, and its cost in advance. Several twins or
    replicas are a dimension `seed`. With an `order` in the recipe the forecast is of that run, else of the recipe.

    The forecast is of *this* network. With `seeds` (how many, or which), `model` is a function that makes one; the
    model of seed s is what it returns after `torch.manual_seed(s)`, and the curves have a dimension `seed`.

    The kernel leaves out the features that the network learns and the noise of small batches. It is good early in
    training, for wide networks and small learning rates; tests of that are noted in `origin.settings["horizon"]`.
    Twins learn features, and are about as good as another training of the network. How far a forecast can be trusted
    is said by its calibrated band: `forecast_band` and `horizon`.
    Work of more than a few seconds shows its progress on stderr, unless `progress` is False.
    """
    if route is not None and not isinstance(route, (Kernel, Coordinates, Twin)):
        raise TypeError(
            f"`route` should say how to calculate, as Kernel(), Coordinates() or Twin(). Found {type(route).__name__}."
        )
    checked_recipe(recipe)
    forecast_measures(checked_watch(watch))
    if look is None and recipe.order is not None:
        raise ValueError(
            "`order` fixes the batches of a training on all of `train`. Found look = None, which holds a fifth of it "
            "out: split the data yourself, or leave `order` out."
        )

    def chosen(network: nn.Module) -> tuple[Route, Choice | None]:
        if route is not None:
            return route, None
        choice = choose(network, train, look, recipe, read=watch.read)
        return choice.route, choice

    def one(network: nn.Module, taken: Route, choice: Choice | None = None) -> Trajectory:
        alone = progress and seeds is None
        if isinstance(taken, Kernel):
            return forecast_by_kernel(network, train, look, recipe, taken, watch, alone)
        if isinstance(taken, Twin):
            cutter = None if choice is None else choice.cutter
            return forecast_by_twins(network, train, look, recipe, taken, watch, alone, cutter)
        return forecast_by_coordinates(network, train, look, recipe, taken, watch)

    def several(networks: list[nn.Module]) -> list[Trajectory]:
        taken, choice = chosen(networks[0])
        if isinstance(taken, Twin):
            found = forecasts_of_networks(networks, train, look, recipe, taken, watch)
        else:
            found = [one(networks[0], taken)]
        return [averaged(run if choice is None else noted(run, choice)) for run in found]

    if seeds is not None:
        return over_initialisations(model, seeds, several, progress)
    taken, choice = chosen(model)  # type: ignore[arg-type]  # checked where it enters
    found = one(model, taken, choice)  # type: ignore[arg-type]
    return found if choice is None else noted(found, choice)
