"""Compare recipes part by part. Two factories are equal if they call the same function with the same settings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tiltmeter.recipe.optimisers import SHORT, unwrapped

if TYPE_CHECKING:
    from tiltmeter.recipe.recipe import Recipe

#: All parts except the optimiser: its short form and its long form count as one part.
OTHERS = (
    *("schedule", "steps", "epochs", "batch", "sampling", "order", "weights", "proportions", "loss", "clip"),
    "interventions",
)


def different_parts(one: Recipe, other: Recipe) -> list[str]:
    """The names of the parts in which two recipes differ."""
    found = [] if _optimiser(one) == _optimiser(other) else ["optimiser"]
    return found + [name for name in OTHERS if _part(getattr(one, name)) != _part(getattr(other, name))]


def _optimiser(recipe: Recipe) -> Any:
    if recipe.optimiser is None:
        return "torch.optim.SGD", {name: getattr(recipe, name) for name in SHORT if getattr(recipe, name)}
    if _positional(recipe.optimiser):
        return recipe.optimiser
    base, settings = unwrapped(recipe.optimiser)
    if getattr(base, "__module__", None) == "torch.optim.sgd" and base.__name__ == "SGD":
        return "torch.optim.SGD", {name: one for name, one in settings.items() if one or name not in SHORT}
    return base, settings


def _part(value: Any) -> Any:
    if isinstance(value, partial) and not _positional(value):
        return unwrapped(value)
    return value


def _positional(make: Any) -> bool:
    """Whether a partial fixes arguments by position; these are not compared."""
    while isinstance(make, partial):
        if make.args:
            return True
        make = make.func
    return False
