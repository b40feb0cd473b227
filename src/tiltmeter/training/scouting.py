"""Scouting: data changed by interventions, with what a scout says of them where an intervention asks for one."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.interventions.kinds import DataIntervention, TermIntervention
from tiltmeter.measures.answers import Answers
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.modules.untouched import untouched
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record.labelled import JSON
from tiltmeter.training.steering import Steering
from tiltmeter.training.update import Update


@dataclass(frozen=True)
class ChangedData:
    """The data to train on, the weights of the scouts (for a checkpoint), and an account for the Origin."""

    data: GroupedData
    scouts: tuple[dict[str, Any], ...] = ()
    account: tuple[dict[str, JSON], ...] = ()


def changed_data(
    laws: Sequence[DataIntervention],
    data: GroupedData,
    model: nn.Module | None = None,
    recipe: Recipe | None = None,
    watch: Watch = Watch(),
    seed: int = 0,
    kept: Sequence[dict[str, Any]] = (),
) -> ChangedData:
    """The data after all interventions, in their order. Scouts whose weights are `kept` from a checkpoint are not
    trained anew.

    A scout is a copy of the untrained model, trained plainly by the same recipe with batches of its own.
    """
    scouts: list[dict[str, Any]] = []
    account: list[dict[str, JSON]] = []
    for number, law in enumerate(laws):
        snapshot = None
        if law.scout:
            assert model is not None
            assert recipe is not None
            scout = copy.deepcopy(model)
            stream = int(np.random.SeedSequence((seed, number, 1)).generate_state(1)[0])
            answers = first_answers(scout, data, recipe, watch)
            if len(scouts) < len(kept):
                scout.load_state_dict(kept[len(scouts)])
            else:
                plain = replace(recipe, interventions=(), steps=law.scout, epochs=None, order=None)
                plain = replace(plain, loss=answers.given)
                _train_plainly(scout, data, plain, watch, stream)
            scouts.append({name: value.detach().clone() for name, value in scout.state_dict().items()})
            snapshot = _snapshot(answers, scout)
        after = law.data(data, snapshot)
        _check(law, data, after)
        account.append({"law": type(law).__name__, "data": after.to_json(), **law.account(data, after, snapshot)})
        data = after
    return ChangedData(data, tuple(scouts), tuple(account))


def train_experts(
    steering: Steering, model: nn.Module, data: GroupedData, recipe: Recipe, watch: Watch, seed: int
) -> None:
    """Train the modules of interventions that want a scout of the model beside it: plainly, with batches of their
    own."""
    for number, law in enumerate(steering.points):
        if not isinstance(law, TermIntervention) or not law.scout:
            continue
        scout = copy.deepcopy(model)
        stream = int(np.random.SeedSequence((seed, number, 2)).generate_state(1)[0])
        plain = replace(recipe, interventions=(), steps=law.scout, epochs=None, order=None)
        plain = replace(plain, loss=first_answers(scout, data, recipe, watch).given)
        _train_plainly(scout, data, plain, watch, stream)
        steering.terms.own[number].load_state_dict(scout.state_dict())


def _train_plainly(model: nn.Module, data: GroupedData, recipe: Recipe, watch: Watch, seed: int) -> None:
    optimiser = recipe.make_optimiser(model.parameters())
    scheduling = recipe.scheduling(optimiser)
    batch = recipe.batches(data).in_turn(data, recipe.batch_size(len(data)), recipe.batch_seed(seed))
    update = Update(model, data, optimiser, recipe, watch.read)
    torch.manual_seed(seed)
    for step in range(recipe.total_steps(len(data))):
        scheduling.before(step)
        update(batch(step), step)
        scheduling.after()


def first_answers(model: nn.Module, data: GroupedData, recipe: Recipe, watch: Watch) -> Answers:
    """What is known of model and loss before training."""
    with untouched(model):
        return Answers(model, data, recipe.loss, watch.decide, watch.read, 256, keep_scores=True)


def _snapshot(answers: Answers, model: nn.Module) -> Snapshot:
    with untouched(model):
        return answers.snapshot(model)


def _check(law: DataIntervention, before: GroupedData, after: object) -> None:
    name = type(law).__name__
    if not isinstance(after, GroupedData):
        raise TypeError(f"`data` of {name} should return GroupedData. Found {type(after).__name__}.")
    if after.groups != before.groups:
        raise ValueError(f"`data` of {name} should keep the groups. Found {after.groups} instead of {before.groups}.")
    if not len(after):
        raise ValueError(f"`data` of {name} should leave points to train on. Found none.")
