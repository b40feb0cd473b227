"""prepared: everything that a training needs before its first step, made from its recipe and data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.known_labels import check_labels_known
from tiltmeter.interventions.cost_of_laws import cost_of
from tiltmeter.recipe.lowered import lowered_recipe
from tiltmeter.recipe.recipe import Recipe, checked_recipe
from tiltmeter.recipe.watch import Watch, checked_watch
from tiltmeter.record.labelled import JSON
from tiltmeter.training.network_laws import (
    NetworkLaws,
    check_group_answers,
    check_groups_in_batches,
    check_needs,
    network_laws,
)
from tiltmeter.training.pull_curve import PullCurve
from tiltmeter.training.scouting import ChangedData, changed_data, first_answers, train_experts
from tiltmeter.training.steering import Steering, trained_parameters


@dataclass(frozen=True)
class Prepared:
    """A training before its first step. `data` and `recipe` are those after the interventions on them; `seed` is that
    of the batches, `told` what the Origin will say.
    """

    data: GroupedData
    recipe: Recipe
    laws: NetworkLaws
    steering: Steering | None
    optimiser: torch.optim.Optimizer
    scheduling: Any
    pull: PullCurve | None
    scouts: Any
    seed: int
    told: Mapping[str, JSON]


def check_training(
    model: nn.Module,
    train: GroupedData,
    look: GroupedData,
    recipe: Recipe,
    watch: Watch,
    held_out: GroupedData | None,
) -> None:
    """Refuse what cannot be trained or looked at, before anything is changed."""
    if not isinstance(train, GroupedData):
        raise TypeError(f"`train` should be GroupedData. Found {type(train).__name__}.")
    checked_recipe(recipe)
    checked_watch(watch)
    check_labels_known(train, look)
    laws = network_laws(recipe, "train")
    check_needs(recipe.interventions, train, held_out)
    check_group_answers(laws.model, held_out, look)
    check_groups_in_batches(laws.steering, train, lowered_recipe(recipe, train))
    lowered_recipe(recipe, train).batches(train)
    if recipe.interventions:
        laws.check_loss(first_answers(model, look, recipe, watch).loss)


def prepared(
    model: nn.Module, train: GroupedData, recipe: Recipe, watch: Watch, seed: int, kept: Mapping[str, Any]
) -> Prepared:
    """Change the data, train scouts and experts, and make the optimiser; `kept` is what laws left at a checkpoint."""
    made = changed_data(network_laws(recipe, "train").data, train, model, recipe, watch, seed, kept.get("scouts", ()))
    lowered = lowered_recipe(recipe, made.data)
    laws = network_laws(lowered, "train")
    steering = None
    if laws.steering:
        steering = Steering(laws.steering, made.data, model=model, proportions=lowered.drawn)
        if "steering" not in kept:
            train_experts(steering, model, made.data, lowered, watch, seed)
    optimiser = lowered.make_optimiser(trained_parameters(model, steering))
    if isinstance(optimiser, torch.optim.LBFGS):
        raise ValueError(
            "`train` takes one step of the optimiser for every batch. Found LBFGS, which evaluates the loss several "
            "times a step: train in a loop of your own, with a Probe."
        )
    return Prepared(
        data=made.data,
        recipe=lowered,
        laws=laws,
        steering=steering,
        optimiser=optimiser,
        scheduling=lowered.scheduling(optimiser),
        pull=PullCurve.of(recipe, made.data, steering),
        scouts=made.scouts,
        seed=lowered.batch_seed(seed),
        told=_told(train, recipe, made),
    )


def _told(train: GroupedData, recipe: Recipe, made: ChangedData) -> dict[str, JSON]:
    """What the Origin says of the training; of interventions, what they cost and what they did to the data."""
    total = recipe.total_steps(len(made.data))
    told: dict[str, JSON] = {"train": train.to_json(), "recipe": recipe.to_json(), "steps": total}
    if recipe.interventions:
        told["cost"] = cost_of(recipe.interventions, len(train.groups), total)
    if made.account:
        told["data_laws"] = list(made.account)
    return told
