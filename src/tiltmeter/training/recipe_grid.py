"""RecipeGrid: several recipes that one stack of runs can follow at once, and the labels of their dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from tiltmeter.interventions.routes import refuse_elsewhere
from tiltmeter.recipe.checks import refuse_run_as
from tiltmeter.recipe.optimisers import unwrapped
from tiltmeter.recipe.rates import is_function_of_step
from tiltmeter.recipe.recipe import Recipe, checked_recipe, different_parts
from tiltmeter.record.labelled import JSON
from tiltmeter.training.stacked_updates import Rate

#: What recipes of one ensemble may differ in.
VARY = ("lr", "weight_decay")


@dataclass(frozen=True)
class RecipeGrid:
    """Recipes in the order of their runs, the last dimension of `labels` varying fastest."""

    recipes: tuple[Recipe, ...]
    decays: tuple[float, ...]
    labels: Mapping[str, np.ndarray]

    def weight_decay(self, seeds: int) -> Rate:
        """One number if all are equal, else one for every run, with seeds varying slowest."""
        return _rate(np.asarray(self.decays), seeds)

    def rates(self, steps: int, seeds: int) -> Callable[[int], Rate]:
        """The learning rate of every step, for all runs."""
        found = [one.learning_rates(steps) for one in self.recipes]
        if all(isinstance(one, float) for one in found):
            constant = _rate(np.asarray(found), seeds)
            return lambda step: constant  # noqa: ARG005
        table = np.stack([np.broadcast_to(np.asarray(one), (steps,)) for one in found])
        return lambda step: _rate(table[:, step], seeds)

    def to_json(self) -> dict[str, JSON]:
        """The one recipe, or all of them."""
        first, *more = (one.to_json() for one in self.recipes)
        return {"recipes": [first, *more]} if more else {"recipe": first}


def recipe_grid(given: Recipe | Sequence[Recipe]) -> RecipeGrid:
    """One recipe or several, if they differ only in learning rate and weight decay.

    >>> grid = recipe_grid([Recipe(lr=rate, steps=10) for rate in (0.1, 0.2)])
    >>> grid.labels
    {'lr': array([0.1, 0.2])}
    """
    recipes = (given,) if isinstance(given, Recipe) or not isinstance(given, Sequence) else tuple(given)
    if not recipes:
        raise ValueError("`recipe` should be a Recipe or several. Found an empty list.")
    for one in recipes:
        refuse_elsewhere(checked_recipe(one).interventions, "ensemble")
        refuse_run_as(one, "`ensemble`")
    for one in recipes[1:]:
        _check_alike(recipes[0], one)
    values = {name: [_setting(one, name) for one in recipes] for name in VARY}
    return RecipeGrid(recipes, tuple(values["weight_decay"]), _dimensions(recipes, values))


def _dimensions(recipes: tuple[Recipe, ...], values: Mapping[str, list[float]]) -> dict[str, np.ndarray]:
    if len(recipes) == 1:
        return {}
    first = recipes[0]
    if any("schedule" in different_parts(first, one) for one in recipes):
        return {"recipe": np.arange(len(recipes))}
    if first.schedule is not None and is_function_of_step(first.schedule):
        values = {**values, "lr": [0.0 for _ in recipes]}  # the schedule gives the rates, the same for all
    return _labels(values)


def _labels(values: Mapping[str, list[float]]) -> dict[str, np.ndarray]:
    """Return dimensions `lr` and `weight_decay` if the recipes form a grid in this order, else `recipe`."""
    axes = {name: np.asarray(list(dict.fromkeys(column))) for name, column in values.items()}
    axes = {name: axis for name, axis in axes.items() if len(axis) > 1}
    pairs = list(zip(*values.values(), strict=True))
    if not axes or len(set(pairs)) < len(pairs):
        return {"recipe": np.arange(len(pairs))}
    mesh = np.meshgrid(*axes.values(), indexing="ij")
    full = len(mesh[0].ravel()) == len(pairs) and all(
        np.array_equal(part.ravel(), values[name]) for name, part in zip(axes, mesh, strict=True)
    )
    return axes if full else {"recipe": np.arange(len(pairs))}


def _check_alike(one: Recipe, other: Recipe) -> None:
    first, second = (_without_rates(recipe) for recipe in (one, other))
    for name in different_parts(first, second):
        was, now = (recipe.to_json().get(name) for recipe in (first, second))
        raise ValueError(
            f"Recipes of one ensemble may differ in lr, weight_decay and schedule. Found another `{name}`: "
            f"{was!r:.80} and {now!r:.80}."
        )


def _without_rates(recipe: Recipe) -> Recipe:
    if recipe.optimiser is None:
        return replace(recipe, lr=1.0, weight_decay=0.0, schedule=None)
    base, settings = unwrapped(recipe.optimiser)
    kept = {name: value for name, value in settings.items() if name not in VARY}
    return replace(recipe, optimiser=partial(base, **kept), schedule=None)


def _setting(recipe: Recipe, name: str) -> float:
    if recipe.optimiser is None:
        return float(getattr(recipe, name) or 0.0)
    made = recipe.make_optimiser([torch.zeros(1, requires_grad=True)])
    return float(made.param_groups[0].get(name, 0.0))


def _rate(values: Any, seeds: int) -> Rate:
    if (values == values[0]).all():
        return float(values[0])
    return torch.as_tensor(np.tile(values, seeds))
