"""prepared: everything that a training needs before its first step, made from its recipe and data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from tiltmeter.data.grouped import GroupedData, check_labels_known
from tiltmeter.data.nested import Nested
from tiltmeter.interventions.cost_of_interventions import cost_of
from tiltmeter.interventions.kinds import ModelIntervention
from tiltmeter.interventions.shared.by_group import GroupScores
from tiltmeter.recipe.lowered import lowered_recipe
from tiltmeter.recipe.recipe import Recipe, checked_recipe
from tiltmeter.recipe.watch import Watch, checked_watch
from tiltmeter.record.labelled import JSON
from tiltmeter.training.network_interventions import (
    NetworkInterventions,
    check_group_answers,
    check_groups_in_batches,
    check_needs,
    network_interventions,
)
from tiltmeter.training.scouting import ChangedData, changed_data, first_answers, train_experts
from tiltmeter.training.steering import PullCurve, Steering, trained_parameters


def delivered(law: ModelIntervention, validation: GroupedData | None, model: nn.Module) -> nn.Module:
    """What the intervention makes of the model; it should have the same parameters, so that it can take the model's
    place."""
    found = law.deliver(model, validation)
    name = type(law).__name__
    if not isinstance(found, nn.Module):
        raise TypeError(f"`deliver` of {name} should return a torch.nn.Module. Found {type(found).__name__}.")
    if law.by_group:
        if not isinstance(found, GroupScores):
            raise TypeError(f"`deliver` of {name} should return GroupScores. Found {type(found).__name__}.")
        return found
    shapes = ({key: tuple(value.shape) for key, value in one.state_dict().items()} for one in (model, found))
    if next(shapes) != next(shapes):
        raise ValueError(f"`deliver` of {name} should return a model with the same parameters: fold changes into them.")
    return found


@dataclass(frozen=True)
class Prepared:
    """A training before its first step. `data` and `recipe` are those after the interventions on them; `seed` is that
    of the batches, `told` what the Origin will say.
    """

    data: GroupedData
    recipe: Recipe
    laws: NetworkInterventions
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
    held_out: GroupedData,
    recipe: Recipe,
    watch: Watch,
    validation: GroupedData | None,
) -> None:
    """Refuse what cannot be trained or looked at, before anything is changed."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"`model` should be a torch.nn.Module. Found {type(model).__name__}.")
    if next(model.parameters(), None) is None:
        raise ValueError("`model` should have parameters to train. Found none.")
    if not isinstance(train, GroupedData):
        raise TypeError(f"`train` should be GroupedData. Found {type(train).__name__}.")
    checked_recipe(recipe)
    checked_watch(watch)
    check_labels_known(train, held_out)
    laws = network_interventions(recipe, "train")
    check_needs(recipe.interventions, train, validation)
    check_group_answers(laws.model, validation, held_out)
    check_groups_in_batches(laws.steering, train, lowered_recipe(recipe, train))
    lowered_recipe(recipe, train).batches(train)
    if laws.batch and isinstance(train.x, Nested):
        raise TypeError(
            f"{type(laws.batch[0]).__name__} makes batches of points that are one tensor. Found points in parts."
        )
    if recipe.interventions:
        laws.check_loss(first_answers(model, held_out, recipe, watch).loss)


def prepared(
    model: nn.Module, train: GroupedData, recipe: Recipe, watch: Watch, seed: int, kept: Mapping[str, Any]
) -> Prepared:
    """Change the data, train scouts and experts, and make the optimiser; `kept` is what interventions left at a
    checkpoint."""
    made = changed_data(
        network_interventions(recipe, "train").data, train, model, recipe, watch, seed, kept.get("scouts", ())
    )
    lowered = lowered_recipe(recipe, made.data)
    laws = network_interventions(lowered, "train")
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
        told["data_interventions"] = list(made.account)
    return told
