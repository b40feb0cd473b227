"""best_weights: the group weights that a forecast recommends, from kernels or from any route."""

from __future__ import annotations

from typing import Any

from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.choice import Route
from tiltmeter.forecast.inputs import checked_data
from tiltmeter.forecast.kernel.network_kernels import tangent
from tiltmeter.forecast.kernel.tangent import Tangent
from tiltmeter.forecast.kernel.weights_by_kernel import weights_by_kernel
from tiltmeter.forecast.recommended import BestWeights
from tiltmeter.forecast.route import Coordinates, Kernel, Twin
from tiltmeter.forecast.weights_by_forecasts import weights_by_forecasts
from tiltmeter.population.criteria import Criterion, WorstGroupLoss
from tiltmeter.recipe.lowered import group_law
from tiltmeter.recipe.recipe import Recipe, checked_recipe

__all__ = ["BestWeights", "best_weights"]


def best_weights(
    source: Tangent | nn.Module,
    recipe: Recipe,
    criterion: Criterion = WorstGroupLoss(),
    *,
    train: GroupedData | None = None,
    look: GroupedData | None = None,
    route: Route | None = None,
) -> BestWeights:
    """The group weights under which the forecast makes a criterion smallest, without training the network.

    >>> import numpy as np
    >>> from tiltmeter.losses import Square
    >>> rng = np.random.default_rng(0)
    >>> x, rare = rng.normal(size=(600, 4)), np.arange(600) % 10 == 0
    >>> data = GroupedData(x, np.sign(np.where(rare, x[:, 1], x[:, 0])), np.where(rare, "rare", "common"))
    >>> found = best_weights(tangent(nn.Linear(4, 1), *data.split(0.5)), Recipe(lr=0.05, steps=300, loss=Square()))
    >>> found.weights["rare"] > 3 and found.after < found.before
    True

    `source` is a `Tangent`, whose kernels answer in a moment, or a network with its `train` and `look`. A network may
    be asked by any route: `Twin()` (taken if none is given) learns features and takes any optimiser, and trains its
    narrow networks about ten times.

    Weights have a mean of 1 over the training data, so that the overall learning rate stays the same. The criterion is
    evaluated on the held-out points: with few of them, the best value is partly luck. The weights are only as good as
    the forecast; see its horizon.
    """
    if not isinstance(source, (Tangent, nn.Module)):
        raise TypeError(
            "`source` should be the result of `tm.tangent`, or a network with train= and look=. Found "
            f"{type(source).__name__}."
        )
    if not isinstance(criterion, Criterion):
        raise TypeError(f"`criterion` should be one, as WorstGroupLoss(). Found {_kind(criterion)}.")
    if checked_recipe(recipe).weights is not None:
        raise ValueError("`best_weights` searches the weights itself: leave them out of the recipe.")
    law = group_law(recipe)
    if law is not None:
        name = type(law).__name__
        raise ValueError(f"`best_weights` searches what groups count: leave out {name}, or use `forecast`.")
    if isinstance(source, Tangent):
        if not (train is None and look is None and route is None):
            raise ValueError(
                "A Tangent has its data and route: leave out train=, look= and route=, or pass the network."
            )
        _check_groups(len(source.sample.groups))
        return weights_by_kernel(source, recipe, criterion)
    if train is None:
        raise ValueError("`best_weights` needs the training data of a network: give train= (and look=), or a Tangent.")
    if route is not None and not isinstance(route, (Kernel, Coordinates, Twin)):
        raise TypeError(f"`route` should be Kernel(), Coordinates() or Twin(). Found {type(route).__name__}.")
    train, look = checked_data(train, look)
    _check_groups(len(train.groups))
    if isinstance(route, Kernel):
        return weights_by_kernel(tangent(source, train, look, sample=route.sample, seed=route.seed), recipe, criterion)
    return weights_by_forecasts(source, train, look, recipe, criterion, Twin() if route is None else route)


def _check_groups(count: int) -> None:
    if count < 2:
        raise ValueError("Weights of groups need at least two groups. Found one.")


def _kind(value: Any) -> str:
    return f"the class {value.__name__}: call it" if isinstance(value, type) else type(value).__name__
