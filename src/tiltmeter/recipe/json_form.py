"""A recipe as JSON, and back as far as its parts can be rebuilt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tiltmeter.interventions.stored import intervention_from_json
from tiltmeter.losses import loss_from_json, loss_to_json
from tiltmeter.recipe.optimisers import SHORT, optimiser_from_json, optimiser_to_json
from tiltmeter.recipe.order import GivenOrder
from tiltmeter.recipe.rates import recipe_schedule_from_json, recipe_schedule_to_json
from tiltmeter.recipe.sampling import Draws, Epochs, Sampling
from tiltmeter.record.labelled import JSON, label_from_json, plain_pairs

if TYPE_CHECKING:
    from tiltmeter.recipe.recipe import Recipe


def recipe_to_json(recipe: Recipe) -> dict[str, JSON]:
    """Write every part by name; leave out parts that are not set."""
    order = recipe.order
    parts: dict[str, JSON] = {
        "optimiser": _short(recipe) if recipe.optimiser is None else optimiser_to_json(recipe.optimiser),
        "schedule": recipe_schedule_to_json(recipe.schedule),
        "steps": None if recipe.steps is None else int(recipe.steps),
        "epochs": None if recipe.epochs is None else int(recipe.epochs),
        "batch": "all" if recipe.batch is None else int(recipe.batch),
        "sampling": None if recipe.sampling is None else _sampling(recipe.sampling),
        "order": order.to_json() if isinstance(order, GivenOrder) else None if order is None else int(order),
        "weights": plain_pairs(recipe.weights),
        "proportions": plain_pairs(recipe.proportions),
        "loss": None if recipe.loss is None else loss_to_json(recipe.loss),
        "clip": None if recipe.clip is None else float(recipe.clip),
        "interventions": [one.to_json() for one in recipe.interventions] or None,
    }
    return {name: part for name, part in parts.items() if part is not None}


def recipe_from_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the recipe."""
    optimiser = dict(value["optimiser"])
    found: dict[str, Any] = {}
    # Without a rate or a schedule of ours, torch's default rate is used.
    rated = "lr" in optimiser or "schedule" in (value.get("schedule") or {})
    if optimiser.get("class") == "SGD" and set(optimiser) <= {"class", *SHORT} and rated:
        found |= {name: optimiser[name] for name in SHORT if name in optimiser}
    else:
        found["optimiser"] = optimiser_from_json(optimiser)
    found |= {name: value[name] for name in ("steps", "epochs", "order", "clip") if name in value}
    if isinstance(found.get("order"), Mapping):
        raise ValueError("The order of this recipe is too long to be kept in a file: pass the array again.")
    found["batch"] = None if value["batch"] == "all" else value["batch"]
    found["schedule"] = recipe_schedule_from_json(value.get("schedule"))
    for name in ("weights", "proportions"):
        if name in value:
            found[name] = {label_from_json(key): number for key, number in value[name]}
    if "sampling" in value:
        found["sampling"] = _sampling_from(value["sampling"])
    if "loss" in value:
        found["loss"] = loss_from_json(value["loss"])
    if value.get("interventions"):
        found["interventions"] = tuple(intervention_from_json(one) for one in value["interventions"])
    return found


def _short(recipe: Recipe) -> dict[str, JSON]:
    """Write plain SGD in the short form, whichever form it was given in."""
    given = {name: getattr(recipe, name) for name in SHORT if getattr(recipe, name)}
    return {"class": "SGD", **{name: one if isinstance(one, bool) else float(one) for name, one in given.items()}}


def _sampling(sampling: Sampling) -> JSON:
    found: dict[str, JSON] = {"kind": type(sampling).__name__}
    if isinstance(sampling, Draws) and sampling.proportions is not None:
        found["proportions"] = plain_pairs(sampling.proportions)
    return found


def _sampling_from(value: Mapping[str, Any]) -> Sampling:
    if value["kind"] == "Epochs":
        return Epochs()
    if value["kind"] == "Draws":
        pairs = value.get("proportions")
        return Draws(None if pairs is None else {label_from_json(key): share for key, share in pairs})
    raise ValueError(f"The sampling {value['kind']!r} is the user's own and cannot be rebuilt from a file.")
