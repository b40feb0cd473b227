"""Recipe: how a network is trained, and what is looked at meanwhile, as two frozen values.

>>> from dataclasses import replace
>>> recipe = Recipe(lr=0.01, steps=1000, batch=16)
>>> replace(recipe, weights={"rare": 5.0}).weights
{'rare': 5.0}
>>> Recipe.from_json(recipe.to_json()) == recipe
True

A `Recipe` holds everything that decides the updates and nothing else; a `Watch` holds everything that only looks. The
same two values go to `train`, `ensemble`, `forecast` and `Probe`.
"""

from tiltmeter.recipe.recipe import BatchOrder, Recipe
from tiltmeter.recipe.watch import Watch

__all__ = ["BatchOrder", "Recipe", "Watch"]
