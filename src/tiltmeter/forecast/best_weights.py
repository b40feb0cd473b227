"""best_weights: the group weights that a forecast recommends, from the kernels of a network."""

from __future__ import annotations

from typing import Any

from tiltmeter.forecast.kernel.tangent import Tangent
from tiltmeter.forecast.kernel.weights_by_kernel import BestWeights, weights_by_kernel
from tiltmeter.population.criteria import Criterion, WorstGroupLoss
from tiltmeter.recipe.lowered import group_intervention
from tiltmeter.recipe.recipe import Recipe, checked_recipe

__all__ = ["BestWeights", "best_weights"]


def best_weights(kernels: Tangent, recipe: Recipe, criterion: Criterion = WorstGroupLoss()) -> BestWeights:
    """The group weights under which the linearised network makes a criterion smallest, without training the network.

    >>> import numpy as np
    >>> from torch import nn
    >>> from tiltmeter.data.grouped import GroupedData
    >>> from tiltmeter.forecast.kernel.network_kernels import tangent
    >>> from tiltmeter.losses import Square
    >>> rng = np.random.default_rng(0)
    >>> x, rare = rng.normal(size=(600, 4)), np.arange(600) % 10 == 0
    >>> data = GroupedData(x, np.sign(np.where(rare, x[:, 1], x[:, 0])), np.where(rare, "rare", "common"))
    >>> best = best_weights(tangent(nn.Linear(4, 1), *data.split(0.5)), Recipe(lr=0.05, steps=300, loss=Square()))
    >>> best.weights["rare"] > 3 and best.after < best.before
    True

    Weights have a mean of 1 over the training data, so that the overall learning rate stays the same. The criterion is
    evaluated on the held-out points: with few of them, the best value is partly luck. The weights are those for the
    linearised network, which learns no features: rehearse them (`tm.forecast` with `replace(recipe, weights=...)`)
    before relying on them.

    Args:
        kernels: Result of `tm.tangent`.
        recipe: Training settings: optimiser, learning rate, length, batches, loss.
        criterion: What is to be small on the held-out points, one of `tm.fairness.criteria`.
    """
    if not isinstance(kernels, Tangent):
        raise TypeError(f"`kernels` should be the result of `tm.tangent`. Found {type(kernels).__name__}.")
    if not isinstance(criterion, Criterion):
        raise TypeError(f"`criterion` should be one, as WorstGroupLoss(). Found {_kind(criterion)}.")
    if checked_recipe(recipe).weights is not None:
        raise ValueError("`best_weights` searches the weights itself: leave them out of the recipe.")
    law = group_intervention(recipe)
    if law is not None:
        name = type(law).__name__
        raise ValueError(f"`best_weights` searches what groups count: leave out {name}, or use `forecast`.")
    if len(kernels.sample.groups) < 2:
        raise ValueError("Weights of groups need at least two groups. Found one.")
    return weights_by_kernel(kernels, recipe, criterion)


def _kind(value: Any) -> str:
    return f"the class {value.__name__}: call it" if isinstance(value, type) else type(value).__name__
