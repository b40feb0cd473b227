"""train: a short training loop for experiments, watched by a `Probe`."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import nn

from tiltmeter.data.grouped import GroupedData, check_labels_known
from tiltmeter.passes.streams import put_back, streams
from tiltmeter.passes.untouched import untouched
from tiltmeter.recipe.lowered import lowered_recipe
from tiltmeter.recipe.recipe import Recipe, checked_recipe
from tiltmeter.recipe.watch import Watch, checked_watch
from tiltmeter.record import Trajectory, When, every
from tiltmeter.record.labelled import JSON
from tiltmeter.training.checkpoint import kept_by_laws, load_checkpoint, save_checkpoint
from tiltmeter.training.delivery import delivered
from tiltmeter.training.law_state import LawState
from tiltmeter.training.network_laws import (
    check_group_answers,
    check_groups_in_batches,
    check_needs,
    cost_of,
    network_laws,
)
from tiltmeter.training.probe import Probe
from tiltmeter.training.pull_curve import PullCurve
from tiltmeter.training.scouting import ChangedData, changed_data, first_answers, train_experts
from tiltmeter.training.steering import Steering, trained_parameters
from tiltmeter.training.update import Update


def train(
    model: nn.Module,
    train: GroupedData,
    look: GroupedData,
    recipe: Recipe,
    *,
    watch: Watch = Watch(),
    seed: int = 0,
    to: str | os.PathLike[str] | None = None,
    checkpoint: When = every(1000),
    resume: bool = False,
    held_out: GroupedData | None = None,
) -> Trajectory:
    """Train the model in place, as the recipe says, and return the curves of every group on held-out points.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 5))
    >>> data = GroupedData(x, np.sign(x[:, 0]), rng.choice(["a", "b"], 400, p=[0.8, 0.2]))
    >>> run = train(nn.Linear(5, 1), *data.split(0.5), Recipe(lr=0.1, steps=100, proportions={"a": 1}))
    >>> run["error"].sel(time=100, group="a").item() < 0.2
    True

    `watch` says what is looked at and when. Batches depend only on `seed` (or the recipe's `order`) and the step.
    torch's random generator starts from `seed`, and the caller's random state is restored at the end. With `to`, the
    run and its checkpoints are kept in that directory. `resume=True` continues from the last checkpoint and reaches
    bit-identical weights; it refuses a recipe that differs from the first one. A run that diverges ends at the look
    that finds it.

    Interventions of the recipe are applied, and what every group counts is the curve `pull`. If one of them delivers
    another model, the curves are those of the model that would be delivered, and `model` holds it at the end;
    `held_out` are the points with groups that it may fit.
    """
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
        laws.check_loss(first_answers(model, look, recipe, checked_watch(watch)).loss)
    if resume and to is None:
        raise ValueError("`resume` continues a run directory: with `to=None` there is none to continue.")
    before = streams()
    try:
        kept = kept_by_laws(Path(to)) if resume and to is not None else {}
        made = changed_data(laws.data, train, model, recipe, checked_watch(watch), seed, kept.get("scouts", ()))
        told = _settings(train, recipe, made)
        asked, recipe = recipe, lowered_recipe(recipe, made.data)
        laws = network_laws(recipe, "train")
        data = made.data
        batches, size = recipe.batches(data), recipe.batch_size(len(data))
        total = recipe.total_steps(len(data))
        steering = Steering(laws.steering, data, model=model, proportions=recipe.drawn) if laws.steering else None
        if steering is not None and "steering" not in kept:
            train_experts(steering, model, data, recipe, checked_watch(watch), seed)
        optimiser = recipe.make_optimiser(trained_parameters(model, steering))
        scheduling = recipe.scheduling(optimiser)
        pull = PullCurve.of(asked, data, steering)
        torch.manual_seed(seed)
        probe = Probe(
            model,
            look,
            watch if pull is None else replace(watch, measures=(*watch.measures, pull)),
            to,
            loss=recipe.loss,
            seed=seed,
            resume=resume and Path(to or ".", "run.json").exists(),
            settings=told,
            deliver=None if laws.model is None else partial(delivered, laws.model, held_out),
        )
        with probe:
            place = probe.place
            start = load_checkpoint(place, model, optimiser, scheduling) if resume and place is not None else 0
            numbers = recipe.batch_seed(seed)
            trained = replace(recipe, loss=probe.loss)
            update = Update(model, data, optimiser, trained, watch.read, laws, steering, numbers)
            state = LawState(made.scouts, steering, update.stepper)
            if start:
                state.load(kept)
            draws = None
            if steering is not None and steering.law is not None and steering.law.by == "draws":
                draws = steering.sampler(data, size, total, seed=numbers)
            seen = -1 if probe.last_step is None else probe.last_step
            for step in range(start, total):
                if step > seen:  # the steps since the checkpoint are repeated identically
                    probe(step)
                if probe.diverged:
                    break
                if place is not None and step > start and checkpoint(step):
                    save_checkpoint(place, step, model, optimiser, scheduling, state.to_save())
                scheduling.before(step)
                update(batches.batch(data, size, numbers, step) if draws is None else draws.at(step), step)
                scheduling.after()
            else:
                if place is not None and start < total:
                    save_checkpoint(place, total, model, optimiser, scheduling, state.to_save())
                probe.look(total, last=True)
        if laws.model is not None and not laws.model.by_group and not probe.diverged:
            with untouched(model):
                final = delivered(laws.model, held_out, model).state_dict()
            model.load_state_dict(final)
    finally:
        put_back(before)
    return probe.trajectory()


def _settings(train: GroupedData, recipe: Recipe, made: ChangedData) -> dict[str, JSON]:
    """What the Origin says of the training; of interventions, what they cost and what they did to the data."""
    total = recipe.total_steps(len(made.data))
    told: dict[str, JSON] = {"train": train.to_json(), "recipe": recipe.to_json(), "steps": total}
    if recipe.interventions:
        told["cost"] = cost_of(recipe.interventions, len(train.groups), total)
    if made.account:
        told["data_laws"] = list(made.account)
    return told
