"""train: a short training loop for experiments, watched by a `Probe`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tiltmeter.arguments import WHEN, checked_flag, checked_kind, checked_seed
from tiltmeter.data.grouped import GroupedData
from tiltmeter.modules.forward import Read
from tiltmeter.modules.untouched import put_back, streams, untouched
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory, When, every, stack
from tiltmeter.record.directory.small_files import TrajectoryHeader, read_header
from tiltmeter.record.labelled import JSON
from tiltmeter.threads import one_thread, small_steps
from tiltmeter.training.checkpoint import (
    InterventionState,
    kept_by_interventions,
    load_checkpoint,
    refuse_missing,
    save_checkpoint,
)
from tiltmeter.training.prepared import Prepared, check_training, delivered, prepared
from tiltmeter.training.probe import Probe
from tiltmeter.training.stability import warn_of_batch_limit
from tiltmeter.training.update import Update


def _several(
    model: nn.Module | Callable[[], nn.Module],
    data: tuple[GroupedData, GroupedData, Recipe],
    seed: int,
    seeds: int,
    to: str | os.PathLike[str] | None,
    given: dict[str, Any],
) -> Trajectory:
    """As many trainings, each with a seed of its own, stacked; each in its own folder of `to`."""
    if not isinstance(seeds, int) or isinstance(seeds, bool) or seeds < 1:
        raise ValueError(f"`seeds` should be a whole number of trainings, as seeds=5. Found seeds = {seeds!r}.")
    runs = []
    for number in range(checked_seed(seed), seed + seeds):
        torch.manual_seed(number)
        own = deepcopy(model) if isinstance(model, nn.Module) else model()
        place = None if to is None else Path(to) / f"seed-{number}"
        runs.append(train(own, *data, seed=number, to=place, **given))
    return stack(runs, labels=range(seed, seed + seeds))


def train(
    model: nn.Module | Callable[[], nn.Module],
    train: GroupedData,
    held_out: GroupedData,
    recipe: Recipe,
    *,
    watch: Watch = Watch(),
    seed: int = 0,
    to: str | os.PathLike[str] | None = None,
    checkpoint: When = every(1000),
    resume: bool = False,
    validation: GroupedData | None = None,
    forecast: Mapping[str, JSON] | None = None,
    seeds: int | None = None,
) -> Trajectory:
    """Train the model in place, as the recipe says, and return the curves of every group on held-out points.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 5))
    >>> data = GroupedData(x, np.sign(x[:, 0]), rng.choice(["a", "b"], 400, p=[0.8, 0.2]))
    >>> run = train(nn.Linear(5, 1), *data.split(0.5), Recipe(lr=0.1, steps=100, proportions={"a": 1}))
    >>> run["error"].sel(time=100, group="a").item() < 0.2
    True

    Batches depend only on `seed` (or the recipe's `order`) and the step. torch's random generator starts from `seed`,
    and the caller's random state is restored at the end. With `to`, the run and its checkpoints are kept in that
    directory. `resume=True` continues from the last checkpoint and reaches bit-identical weights; it refuses a recipe
    that differs from the first one. A run that diverges ends at the evaluation that finds it.

    Interventions of the recipe are applied, and what every group counts is the curve `pull`. If one of them delivers
    another model, the curves are those of the model that would be delivered, and `model` holds it at the end.

    Args:
        model: Network to train, in place; with `seeds` a network that is copied, or a function that makes one.
        train: Points to train on, with their groups.
        held_out: Points that judge the model and are never trained on.
        recipe: Training settings: optimiser, learning rate, length, batches, loss.
        watch: When to evaluate, and which measures to add to the default curves.
        seed: Seed of torch's random numbers and, without an `order`, of the batches.
        to: Directory of the run and its checkpoints; None: memory.
        checkpoint: Steps after which a checkpoint is written.
        resume: Whether the run in `to` continues from its last checkpoint, to bit-identical weights.
        validation: Points with groups that an intervention on the model may fit; None: none.
        seeds: How many trainings to make, stacked along `seed`: a network keeps its initial weights and gets other
            orders of batches, a function also makes other weights; None: one training, in place.
        forecast: What `leaders(ahead).gap_forecast` says of this training, which the run answers; None: none.
    """
    if seeds is not None:
        given = {"watch": watch, "checkpoint": checkpoint, "resume": resume, "validation": validation}
        return _several(model, (train, held_out, recipe), seed, seeds, to, given)
    if callable(model) and not isinstance(model, nn.Module):
        raise TypeError(
            "`model` should be a torch.nn.Module. Found a function: one that makes the network is for several "
            "trainings, train(make, ..., seeds=5)."
        )
    if forecast is not None:
        checked_kind("forecast", forecast, Mapping, "a mapping, as the forecast of a training file")
    check_training(model, train, held_out, recipe, watch, validation)
    seed, resume = checked_seed(seed), checked_flag("resume", resume)
    checked_kind("checkpoint", checkpoint, When, WHEN)
    if to is None and resume:
        raise ValueError("`resume` continues a run directory: with `to=None` there is none to continue.")
    if resume and to is not None and Path(to, "run.json").exists():
        # A training that goes on answers the forecast that it began with, whatever was forecast since.
        header = read_header(Path(to))
        begun: Any = header.origin.settings.get("forecast") if isinstance(header, TrajectoryHeader) else None
        forecast = begun if isinstance(begun, Mapping) else None
    before = streams()
    try:
        kept = kept_by_interventions(Path(to)) if resume and to is not None else {}
        made = prepared(model, train, recipe, watch, seed, kept)
        warn_of_batch_limit(model, made.data, made.recipe)
        torch.manual_seed(seed)
        deliver = made.laws.model
        probe = Probe(
            model,
            held_out,
            watch if made.pull is None else replace(watch, measures=(*watch.measures, made.pull)),
            to,
            loss=recipe.loss,
            seed=seed,
            resume=resume and Path(to or ".", "run.json").exists(),
            settings=made.told if forecast is None else {**made.told, "forecast": dict(forecast)},
            deliver=None if deliver is None else partial(delivered, deliver, validation),
            budget=None,
            strict=True,  # the loop is ours: what fails is raised, and the run can be resumed
        )
        probe.sync_each = False
        with one_thread(small_steps(model, recipe.batch_size(len(train)))), probe:
            _take_steps(model, made, probe, watch.read, checkpoint, kept if resume else None)
        if deliver is not None and not deliver.by_group and not probe.diverged:
            with untouched(model):
                final = delivered(deliver, validation, model).state_dict()
            model.load_state_dict(final)
    finally:
        put_back(before)
    return probe.trajectory()


def _take_steps(
    model: nn.Module,
    made: Prepared,
    probe: Probe,
    read: Read | None,
    checkpoint: When,
    kept: dict[str, Any] | None,
) -> None:
    """All steps from the last checkpoint (`kept` is None: from the first) to the end, with evaluations and
    checkpoints."""
    data, recipe, place = made.data, made.recipe, probe.place
    resumed = kept is not None and place is not None
    start = load_checkpoint(place, model, made.optimiser, made.scheduling) if resumed and place is not None else 0
    if resumed and place is not None:
        refuse_missing(probe.when, probe.next_step, start, place)
    size, total = recipe.batch_size(len(data)), recipe.total_steps(len(data))
    update = Update(
        model, data, made.optimiser, replace(recipe, loss=probe.loss), read, made.laws, made.steering, made.seed
    )
    state = InterventionState(made.scouts, made.steering, update.stepper)
    if start and kept is not None:
        state.load(kept)
    batch = recipe.batches(data).in_turn(data, size, made.seed)
    if made.steering is not None and made.steering.law is not None and made.steering.law.by == "draws":
        batch = made.steering.sampler(data, size, total, seed=made.seed).at
    seen = -1 if probe.last_step is None else probe.last_step
    scheduled = not made.scheduling.constant
    for step in range(start, total):
        if step > seen:  # the steps since the checkpoint are repeated identically
            probe(step)
        if probe.diverged:
            return
        if place is not None and step > start and checkpoint(step):
            probe.sync()
            save_checkpoint(place, step, model, made.optimiser, made.scheduling, state.to_save())
        if scheduled:
            made.scheduling.before(step)
        update(batch(step), step)
        if scheduled:
            made.scheduling.after()
    if place is not None and start < total:
        probe.sync()
        save_checkpoint(place, total, model, made.optimiser, made.scheduling, state.to_save())
    probe.evaluate(total, last=True)
