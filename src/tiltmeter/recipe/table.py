"""The text form of a recipe: the `[training]` table of a TOML file.

[training]
optimiser = "adamw"        # or sgd, adam, or a table {class = "RMSprop", lr = 0.01, alpha = 0.9}
lr = 0.001                 # or a schedule: {schedule = "Cosine", initial = 0.001, duration = 5000}
steps = 5000
batch = 64                 # or "all"
loss = "logistic"
clip = 1.0
accumulate = 4             # a batch in four parts; also autocast = "bfloat16", compile = true
weights = {rare = 4.0}

[[training.interventions]]
kind = "GroupDRO"          # and its fields
rate = 0.01
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

from tiltmeter.interventions.stored import intervention_from_json
from tiltmeter.losses import CrossEntropy, Hinge, Logistic, Square
from tiltmeter.recipe.optimisers import SHORT, optimiser_from_json
from tiltmeter.recipe.recipe import AS_GIVEN, Recipe
from tiltmeter.schedules import schedule_from_table

LOSSES: dict[str, Any] = {
    "square": Square(),
    "logistic": Logistic(),
    "hinge": Hinge(),
    "cross-entropy": CrossEntropy(),
}
OPTIMISERS = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW"}


def recipe_from_table(table: Mapping[str, Any], groups: Sequence[Hashable] = ()) -> Recipe:
    """The recipe that a `[training]` table describes; `groups` are the labels that its keys may name.

    >>> recipe_from_table({"lr": 0.1, "steps": 100, "loss": "logistic", "weights": {"2": 3.0}}, (1, 2)).weights
    {2: 3.0}
    """
    given: dict[str, Any] = {name: table[name] for name in AS_GIVEN if name in table}
    check_words(table)
    given |= _optimiser(table)
    if "batch" in table:
        given["batch"] = None if table["batch"] == "all" else table["batch"]
    if "loss" in table:
        given["loss"] = loss_named(table["loss"])
    if isinstance(table.get("lr"), Mapping):
        given["schedule"] = schedule_from_table(table["lr"], "[training] lr")
    for name in ("weights", "proportions"):
        if name in table:
            given[name] = _by_group(name, table[name], groups)
    if "interventions" in table:
        given["interventions"] = tuple(_law(one, groups) for one in table["interventions"])
    return Recipe(**given)


def check_words(table: Mapping[str, Any]) -> None:
    """Refuse names of optimisers and losses that do not exist, before any data are read."""
    word = table.get("optimiser", "sgd")
    if not isinstance(word, Mapping) and (not isinstance(word, str) or word not in OPTIMISERS):
        raise KeyError(f"[training] optimiser: no {word!r}. There are: {', '.join(OPTIMISERS)}.")
    if "loss" in table:
        loss_named(table["loss"])


def loss_named(word: Any) -> Any:
    """The loss of this name."""
    if not isinstance(word, str) or word not in LOSSES:
        raise KeyError(f"[training] loss: no {word!r}. There are: {', '.join(LOSSES)}.")
    return LOSSES[word]


def _optimiser(table: Mapping[str, Any]) -> dict[str, Any]:
    word = table.get("optimiser", "sgd")
    settings = {name: table[name] for name in SHORT if name in table and not isinstance(table[name], Mapping)}
    if isinstance(word, Mapping):
        if settings:
            raise ValueError(f"[training] {next(iter(settings))} belongs into the table of the optimiser.")
        return {"optimiser": optimiser_from_json(word)}
    if "lr" not in table:
        raise KeyError("[training] needs `lr`, the learning rate.")
    if word == "sgd":
        return settings
    for name in ("momentum", "nesterov"):
        if name in table:
            raise ValueError(f"[training] {name} belongs to sgd. Found optimiser = {word!r}.")
    import torch

    return {"optimiser": partial(getattr(torch.optim, OPTIMISERS[word]), **settings)}


def _law(given: Any, groups: Sequence[Hashable]) -> Any:
    """An intervention by its name and fields; a table among the fields has groups for keys, unless it is a schedule."""
    if not isinstance(given, Mapping):
        raise TypeError(f'[training] interventions should be tables, as {{kind = "GroupDRO"}}. Found {given!r}.')
    return intervention_from_json(
        {
            key: _by_group(key, one, groups) if isinstance(one, Mapping) and "schedule" not in one else one
            for key, one in given.items()
        }
    )


def _by_group(name: str, given: Any, groups: Sequence[Hashable]) -> Any:
    """Keys of a TOML table are texts: each stands for the group whose label reads like it."""
    if not isinstance(given, Mapping):
        raise TypeError(f"[training] {name} should be a table of groups, as {{rare = 2.0}}. Found {given!r}.")
    return {next((group for group in groups if str(group) == key), key): value for key, value in given.items()}
