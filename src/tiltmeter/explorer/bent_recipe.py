"""Bent recipe: a recipe as the sliders of the forecast page change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tiltmeter.recipe import Recipe

MOST_STEPS, MOST_LR = 1_000_000, 1000.0


def bent_recipe(recipe: Recipe, groups: Sequence[Any], bend: Mapping[str, Any]) -> Recipe:
    """The recipe with what the sliders say: `lr`, `steps`, `weights` and `shares` by group, the name of a `law`.

    No weights and no shares leave those of the recipe as they are.
    """
    from tiltmeter.advice.menu import menu

    changed: dict[str, Any] = {"steps": _between("steps", bend["steps"], 1, MOST_STEPS), "epochs": None}
    if bend["lr"] is not None:
        _between("lr", bend["lr"], 0, MOST_LR, low_too=False)
        if recipe.lr is None:
            raise ValueError("`lr` of this recipe is a schedule or belongs to its optimiser, so it stays as it is.")
        changed["lr"] = bend["lr"]
    for name in ("weights", "shares"):
        if bend[name] and len(bend[name]) != len(groups):
            raise ValueError(f"`{name}` should be one number for each of the {len(groups)} groups.")
    if bend["weights"]:
        plain = np.allclose(bend["weights"], 1.0)
        changed["weights"] = None if plain else dict(zip(groups, bend["weights"], strict=True))
    if bend["shares"]:
        changed |= {"proportions": dict(zip(groups, bend["shares"], strict=True)), "sampling": None}
    if bend["law"]:
        laws = menu(int(changed["steps"]))
        if bend["law"] not in laws:
            raise ValueError(f"There is no intervention {bend['law'][:40]!r}. There are: {', '.join(laws)}.")
        changed["interventions"] = (*recipe.interventions, laws[bend["law"]])
    return replace(recipe, **changed)


def _between(name: str, value: float, low: float, high: float, low_too: bool = True) -> float:
    if not (low <= value if low_too else low < value) or not value <= high:
        raise ValueError(f"`{name}` should lie between {low:g} and {high:g}. Found {name} = {value:g}.")
    return value
