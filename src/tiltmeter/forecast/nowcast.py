"""nowcast: the rest of a training that is on its way, from its weights and its optimiser as they are now."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.inputs import checked_model
from tiltmeter.forecast.methods import Rehearsal, checked_method
from tiltmeter.forecast.policy import SECONDS, SHARE, checked_budget, twin_for
from tiltmeter.forecast.task import ForecastTask, forecast_task
from tiltmeter.forecast.twin.twins import ResumeState
from tiltmeter.modules.forward import bare
from tiltmeter.modules.untouched import deep_copy, put_back, streams
from tiltmeter.recipe.recipe import Recipe, checked_recipe, different_parts
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory, load
from tiltmeter.training.checkpoint import NAME, load_checkpoint


def nowcast(
    run: str | os.PathLike[str] | int,
    model: nn.Module,
    train: GroupedData,
    held_out: GroupedData,
    recipe: Recipe,
    budget: float | None = None,
    method: Any = None,
    *,
    optimiser: torch.optim.Optimizer | None = None,
    watch: Watch = Watch(),
) -> Trajectory:
    """Forecast the rest of a training from where it stands: the curves from this step to the last.

    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> from tiltmeter.training.loop import train as train_it
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 5))
    >>> data = GroupedData(x, np.sign(x[:, 0]), rng.choice(["a", "b"], 400)).split(0.5)
    >>> recipe, line = Recipe(torch.optim.Adam, steps=40), nn.Linear(5, 1)
    >>> with TemporaryDirectory() as folder:
    ...     _ = train_it(line, *data, recipe, to=folder + "/run")
    ...     rest = nowcast(folder + "/run", line, *data, replace(recipe, steps=200), method=Rehearsal(1))
    >>> rest["loss"].time.values[[0, -1]]
    array([ 40, 200])

    For a run directory, weights, optimiser and schedule are those of its last checkpoint, the batches those of its
    seed.

    The rest of the training is rehearsed from the weights as they are, if the `budget` (CPU seconds; default: a minute,
    or 0.6 of the rest where that is more) pays for it; else one narrow copy of the network is trained to the end.
    `method` takes `Rehearsal()` or `Twin()` instead. Both promise the end and the second half of the training; with the
    run's own batches a rehearsal is the rest of the run.

    Args:
        run: Directory of a run of `train`; or the number of updates made so far in a loop of your own.
        model: A network of the same kind, not changed; in a loop of your own, the network as it is.
        train: Points to train on, with their groups.
        held_out: Points that judge the model and are never trained on.
        recipe: Training settings: optimiser, learning rate, length, batches, loss.
        budget: CPU seconds to spend; None: a minute, or 0.6 of the rest where that is more.
        method: `Rehearsal()` or `Twin()`; None: what the budget pays for.
        optimiser: The one in use, for a loop of your own; None: that of the last checkpoint.
        watch: When to evaluate, and which measures to add to the default curves.
    """
    if method is not None and not hasattr(checked_method(method), "rest"):
        raise TypeError(f"`method` of a nowcast should be Rehearsal() or Twin(). Found {type(method).__name__}.")
    checked_recipe(recipe)
    checked_model(model)
    if recipe.interventions:
        name = type(recipe.interventions[0]).__name__
        raise ValueError(f"A nowcast applies no interventions, which remember. Found {name}: `train` applies it.")
    if isinstance(run, int):
        own, state = _from_loop(run, model, recipe, optimiser)
    else:
        if optimiser is not None:
            raise ValueError("`optimiser` is read from the run directory: leave it out.")
        own, state, seed = _from_directory(Path(run), model, recipe)
        recipe = replace(recipe, order=seed) if recipe.order is None else recipe
    task = replace(forecast_task(own, train, held_out, recipe, watch), model=own)  # whose optimiser this is
    if state.step >= task.steps:
        raise ValueError(f"The run should have steps to come. Found {state.step} of {task.steps} done.")
    method = rest_method(task, state.step, budget) if method is None else method
    ahead: Trajectory = method.rest(task, state)
    return ahead


def rest_method(task: ForecastTask, step: int, budget: float | None) -> Any:
    """A rehearsal of the rest if the budget pays for it, else one narrow copy where it can be cut."""
    left = task.price.training * (1.0 - step / task.steps)
    budget = max(SECONDS, SHARE * left) if budget is None else checked_budget(budget)
    if left <= budget:
        return Rehearsal(1 if task.order_known else min(3, int(budget // max(left, 1e-9))))
    return twin_for(task) or Rehearsal(1)


def _from_loop(step: int, model: nn.Module, recipe: Recipe, optimiser: Any) -> tuple[nn.Module, ResumeState]:
    """A copy of the network and of its optimiser, as they are."""
    if step < 0:
        raise ValueError(f"`run` should be a run directory, or how many updates were made. Found run = {step}.")
    if not isinstance(optimiser, torch.optim.Optimizer):
        raise TypeError(
            "`optimiser` should be the one in use, whose memory decides the next steps. Found "
            f"{'none' if optimiser is None else type(optimiser).__name__}."
        )
    own = deep_copy(bare(model))
    made = recipe.make_optimiser(own.parameters())
    try:
        made.load_state_dict(optimiser.state_dict())
    except (ValueError, KeyError) as error:
        raise ValueError(f"`optimiser` should be that of the recipe. Found: {error}") from None
    if type(made) is not type(optimiser):
        raise ValueError(
            f"`optimiser` should be that of the recipe, {type(made).__name__}. Found {type(optimiser).__name__}."
        )
    state: Mapping[str, Any] = {}
    scheduling = recipe.scheduling(recipe.make_optimiser(own.parameters()))
    if scheduling.state_dict():
        with warnings.catch_warnings():  # torch misses the updates, which another optimiser has made
            warnings.simplefilter("ignore", UserWarning)
            for _ in range(step):
                scheduling.after()
        state = scheduling.state_dict()
    return own, ResumeState(step, made, state)


def _from_directory(place: Path, model: nn.Module, recipe: Recipe) -> tuple[nn.Module, ResumeState, int]:
    """What the last checkpoint of a run holds, and the seed of the run."""
    if not (place / NAME).exists():
        raise FileNotFoundError(
            f"{place} holds no checkpoint: `train(..., to=..., checkpoint=tm.record.every(100))` keeps them."
        )
    origin = load(place).origin
    noted: Any = origin.settings.get("recipe")
    try:
        different = different_parts(replace(Recipe.from_json(noted), steps=recipe.steps, epochs=recipe.epochs), recipe)
    except (KeyError, TypeError, ValueError):
        different = []  # a recipe that cannot be rebuilt cannot be compared
    if different:
        raise ValueError(f"The run was made by another recipe: `{different[0]}` differs.")
    own = deep_copy(bare(model))
    made = recipe.make_optimiser(own.parameters())
    scheduling = recipe.scheduling(made)
    before = streams()
    try:
        step = load_checkpoint(place, own, made, scheduling)
    finally:
        put_back(before)
    return own, ResumeState(step, made, scheduling.state_dict()), int(origin.seeds[0]) if origin.seeds else 0
