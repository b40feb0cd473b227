"""A constant intervention of groups in a recipe, written as the weights or proportions that it stands for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tiltmeter.data.group_shares import share_of
from tiltmeter.data.grouped import GroupedData
from tiltmeter.interventions.group_intervention import GroupIntervention, Seen, refuse_unreachable
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.sampling import GivenOrder


def group_intervention(recipe: Recipe) -> GroupIntervention | None:
    """The intervention of groups of a recipe, if it has one."""
    return next((law for law in recipe.interventions if isinstance(law, GroupIntervention)), None)


def lowered_recipe(recipe: Recipe, data: GroupedData, shares: np.ndarray | None = None) -> Recipe:
    """Return the recipe with its constant intervention as weights (P / p) or proportions (P): the shares are known
    here.

    >>> from tiltmeter.interventions import Balanced
    >>> data = GroupedData(np.zeros((100, 1)), np.zeros(100), ["a"] * 80 + ["b"] * 20)
    >>> lowered_recipe(Recipe(lr=0.1, steps=5, interventions=(Balanced(),)), data).weights
    {'a': 0.625, 'b': 2.5}

    `shares` are those of the training data, if `data` is only a sample of them.
    """
    law = group_intervention(recipe)
    if law is None:
        return recipe
    check_draws(recipe, law)
    if shares is None or recipe.drawn is not None:
        shares = share_of(data, recipe.drawn)
    refuse_unreachable(law, data.groups, shares)
    if not law.constant:
        return recipe
    pulls = constant_pull(law, data, shares)
    rest = tuple(one for one in recipe.interventions if one is not law)
    if law.by == "draws":
        parts = dict(zip(data.groups, pulls.tolist(), strict=True))
        return replace(recipe, proportions=parts, sampling=None, interventions=rest)
    factors = dict(zip(data.groups, (pulls / shares).tolist(), strict=True))
    given = dict(recipe.weights or {})
    both = {group: factor * given.pop(group, 1.0) for group, factor in factors.items()}
    return replace(recipe, weights={**both, **given}, interventions=rest)


def constant_pull(law: GroupIntervention, data: GroupedData, shares: np.ndarray) -> np.ndarray:
    """What groups count by a constant intervention, of shares as drawn."""
    return law.pull(law.start(shares), Seen(0.0, data.groups, shares, np.full_like(shares, np.nan)))


def check_draws(recipe: Recipe, law: GroupIntervention) -> None:
    """An intervention that draws decides which points come, so that nothing else may."""
    if law.by != "draws":
        return
    name = type(law).__name__
    if isinstance(recipe.order, GivenOrder):
        raise ValueError(f'An array as `order` says which points come, and so does {name} with by="draws".')
    if recipe.epochs is not None:
        raise ValueError(f'{name} with by="draws" draws every batch anew: give steps= instead of epochs=.')
