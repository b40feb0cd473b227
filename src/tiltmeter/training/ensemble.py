"""ensemble: many seeds of one recipe, or of several that differ in learning rate or weight decay, trained at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.arguments import WHEN, checked_count, checked_flag, checked_kind, checked_seeds
from tiltmeter.data.grouped import GroupedData, check_labels_known
from tiltmeter.interventions.cost_of_interventions import cost_of
from tiltmeter.interventions.routes import refuse_elsewhere
from tiltmeter.measures.answers import Answers
from tiltmeter.measures.default_curves import DEFAULTS
from tiltmeter.measures.group_metric import GroupMetric
from tiltmeter.measures.point_keeper import MOST_NUMBERS, PointKeeper
from tiltmeter.measures.point_loss import point_loss
from tiltmeter.modules.forward import Read, describe, flat_scores
from tiltmeter.modules.untouched import put_back, streams, untouched
from tiltmeter.recipe.checks import refuse_run_as
from tiltmeter.recipe.lowered import lowered_recipe
from tiltmeter.recipe.optimisers import check_alike, unwrapped
from tiltmeter.recipe.rates import is_function_of_step
from tiltmeter.recipe.recipe import Recipe, checked_recipe, different_parts
from tiltmeter.recipe.watch import Watch, checked_watch
from tiltmeter.record import Origin, Recorder, Trajectory, When, every
from tiltmeter.record.labelled import JSON
from tiltmeter.training.checkpoint import StackedCheckpoint, refuse_missing
from tiltmeter.training.network_interventions import (
    NetworkInterventions,
    check_groups_in_batches,
    check_needs,
    network_interventions,
)
from tiltmeter.training.probe import as_measure
from tiltmeter.training.scouting import ChangedData, changed_data
from tiltmeter.training.stacked import Stacked
from tiltmeter.training.stacked_loop import StackedObservations, stacked_batches, stacked_loss, train_stacked
from tiltmeter.training.stacked_updates import Rate, stacked_update
from tiltmeter.training.steering import PullCurve, Steering

#: What recipes of one ensemble may differ in.
VARY = ("lr", "weight_decay")


def ensemble(
    make: Callable[[], nn.Module],
    train: GroupedData,
    held_out: GroupedData | None,
    recipe: Recipe | Sequence[Recipe],
    *,
    seeds: int | Sequence[int] = 32,
    watch: Watch = Watch(),
    chunk: int = 256,
    to: str | os.PathLike[str] | None = None,
    checkpoint: When = every(1000),
    resume: bool = False,
) -> Trajectory:
    """Train the models of many seeds at once and return their group curves, with a dimension `seed`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1200, 5))
    >>> data = GroupedData(x, np.sign(x[:, 0] + x[:, 1]), rng.choice(["a", "b"], 1200, p=[0.8, 0.2]))
    >>> run = ensemble(lambda: nn.Linear(5, 1), *data.split(), Recipe(lr=0.1, steps=100), seeds=4)
    >>> run["error"].sel(time=100).mean("seed").max().item() < 0.1
    True

    The model of seed s is what `make()` returns after `torch.manual_seed(s)`. It sees the same batches as `train(model,
    train, held_out, recipe, seed=s)`, and ends at the same weights up to rounding. (Not with Dropout: all models share
    one random stream for its masks.)

    Several recipes may be given if they differ only in learning rate or weight decay. Every seed is trained with each
    of them, and the curves have a dimension `lr`, `weight_decay` or both, or `recipe` if they do not form a grid. The
    optimiser is SGD, Adam or AdamW of torch.optim; `measures` of `watch` are functions f(y_true, y_score). Of the
    interventions it applies interventions of groups by weights, of points, and of the data without a scout.

    With `to`, the run and its checkpoints are kept in that directory, and the same call with `resume=True` continues
    from the last checkpoint to bit-identical curves.

    Args:
        make: Makes an untrained network; the one of seed s is made after `torch.manual_seed(s)`.
        train: Points to train on, with their groups.
        held_out: Points that judge the models; None: a fifth of `train` is set aside.
        recipe: Training settings; or several that differ only in learning rate or weight decay.
        seeds: How many seeds, or a list of them.
        watch: When to evaluate, and which measures to add to the default curves.
        chunk: Points that pass through the model at once; fewer need less memory.
        to: Directory of the run and its checkpoints; None: memory.
        checkpoint: Steps after which a checkpoint is written.
        resume: Whether the run in `to` continues from its last checkpoint.
    """
    checked_count("chunk", chunk)
    checked_kind("checkpoint", checkpoint, When, WHEN)
    if checked_flag("resume", resume) and to is None:
        raise ValueError("`resume` continues a run directory: with `to=None` there is none to continue.")
    if isinstance(make, torch.nn.Module) or not callable(make):
        raise TypeError(
            "`make` should be a function that makes a new model, as lambda: nn.Linear(5, 1). "
            f"Found {type(make).__name__}."
        )
    plan = _plan(train, held_out, recipe, seeds)
    before = streams()
    try:
        return _train(plan, make, checked_watch(watch), chunk, to, checkpoint, resume)
    finally:
        put_back(before)


@dataclass(frozen=True, eq=False)
class _Plan:
    """What is trained on which points: `told` are the data as given, `made` those that interventions of the data made
    of them.

    `first` is the first recipe in the numbers of this training set; the others differ from it in their rates only.
    """

    told: GroupedData
    made: ChangedData
    held_out: GroupedData
    grid: RecipeGrid
    first: Recipe
    seeds: list[int]

    @property
    def train(self) -> GroupedData:
        return self.made.data

    @property
    def steps(self) -> int:
        return self.first.total_steps(len(self.train))


def _plan(
    train: GroupedData, held_out: GroupedData | None, recipe: Recipe | Sequence[Recipe], seeds: int | Sequence[int]
) -> _Plan:
    """Check everything that can be checked before a model is made."""
    told, validation = _data(train, held_out)
    check_labels_known(told, validation)
    numbers = list(checked_seeds(seeds))
    grid = recipe_grid(recipe)
    check_needs(grid.recipes[0].interventions, told, None)
    given = lowered_recipe(grid.recipes[0], told)
    check_groups_in_batches(network_interventions(given, "ensemble").steering, told, given)
    made = changed_data(network_interventions(grid.recipes[0], "ensemble").data, told)
    return _Plan(told, made, validation, grid, lowered_recipe(grid.recipes[0], made.data), numbers)


def _train(
    plan: _Plan,
    make: Callable[[], nn.Module],
    watch: Watch,
    chunk: int,
    to: str | os.PathLike[str] | None,
    checkpoint: When,
    resume: bool,
) -> Trajectory:
    train, held_out, grid, first = plan.train, plan.held_out, plan.grid, plan.first
    laws = network_interventions(first, "ensemble").steering
    batches, size, total = first.batches(train), first.batch_size(len(train)), plan.steps
    measures = DEFAULTS + tuple(_measure(measure) for measure in watch.measures)
    models = [_model(make, seed) for seed in plan.seeds]
    stacked = Stacked([model for model in models for _ in grid.recipes], watch.read)
    optimiser = first.make_optimiser(list(models[0].parameters()))
    check_alike(optimiser, models[0].parameters())
    memory: dict[str, Any] = {}
    update = stacked_update(optimiser, grid.weight_decay(len(models)), first.clip, memory)
    keep = len(measures) > len(DEFAULTS) or watch.entropy
    with untouched(models[0]):
        answers = Answers(models[0], held_out, first.loss, watch.decide, watch.read, chunk, keep)
    NetworkInterventions(steering=laws).check_loss(answers.loss)
    steering = None
    if laws:
        steering = Steering(laws, train, model=models[0], proportions=first.drawn, runs=stacked.runs)
    pull = PullCurve.of(grid.recipes[0], train, steering)
    like = next((p for p in models[0].parameters() if p.is_floating_point()), torch.empty(0))
    x, seen = (part.tensors(like.dtype)[0].to(like.device) for part in (train, held_out))
    evaluations = sorted({*watch.when.steps(total), total})
    runs = {"seed": np.asarray(plan.seeds), **grid.labels}
    fits = len(evaluations) * len(held_out) * stacked.runs <= MOST_NUMBERS
    keeper = PointKeeper(held_out, runs, total, watch.entropy) if watch.points and fits else None
    going_on = resume and Path(to or ".", "run.json").exists()
    with Recorder(to, clock="step", origin=_origin(models[0], answers, watch, plan), resume=going_on) as recorder:
        observe = StackedObservations(stacked, answers, measures, seen, runs, recorder, keeper, pull)
        keep_state = StackedCheckpoint(recorder.path, checkpoint, stacked, observe, memory, steering)
        start = keep_state.load() if going_on else 0
        if recorder.path is not None:
            refuse_missing(watch.when, recorder.next_step, start, recorder.path)
        point_loss_of = _point_loss(models[0], answers.given, train, x, watch.read)
        train_stacked(
            stacked,
            update,
            grid.rates(total, len(models)),
            stacked_batches(batches, train, size, [first.batch_seed(seed) for seed in plan.seeds], start),
            x,
            stacked_loss(point_loss_of, train, first.weights, like, steering, x),
            evaluations,
            observe,
            start,
            keep_state,
        )
        return recorder.trajectory()


def _origin(model: nn.Module, answers: Answers, watch: Watch, plan: _Plan) -> Origin:
    laws = plan.grid.recipes[0].interventions
    steps = plan.grid.recipes[0].total_steps(len(plan.train))
    more: dict[str, JSON] = {"data_interventions": list(plan.made.account)} if plan.made.account else {}
    if laws:
        more["cost"] = cost_of(laws, len(plan.told.groups), steps)
    settings = {
        "model": describe(model),
        "loss": answers.loss.definition,
        "when": watch.when.to_json(),
        "train": plan.told.to_json(),
        "steps": steps,
        **plan.grid.to_json(),
        **more,
    }
    return Origin("training", problem={"held_out": answers.data.to_json()}, settings=settings, seeds=tuple(plan.seeds))


def _data(data: object, held_out: object) -> tuple[GroupedData, GroupedData]:
    for name, value in (("train", data), ("held_out", data if held_out is None else held_out)):
        if not isinstance(value, GroupedData):
            raise TypeError(f"`{name}` should be GroupedData. Found {type(value).__name__}.")
    assert isinstance(data, GroupedData)
    return data.split() if held_out is None else (data, held_out)  # type: ignore[return-value]


def _measure(measure: Callable[..., Any]) -> GroupMetric:
    found = as_measure(measure)
    if not isinstance(found, GroupMetric):
        raise TypeError("`measures` of an ensemble should be functions f(y_true, y_score). Found one of a snapshot.")
    return found


def _model(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    torch.manual_seed(seed)
    model = make()
    if not isinstance(model, nn.Module):
        raise TypeError(f"`make` should return a torch.nn.Module. Found {type(model).__name__}.")
    return model


def _point_loss(model: nn.Module, loss: Any, train: GroupedData, x: Tensor, read: Read | None) -> Any:
    """Return the loss to train with, after a trial on the first points."""
    few = x[:8]
    with untouched(model):
        score = flat_scores(model(few.clone()), len(few), read)
    y = train.tensors()[1][: len(few)]
    return point_loss(loss, score, y.long() if score.ndim == 2 else y.to(score.dtype), train.labels.tolist())


@dataclass(frozen=True)
class RecipeGrid:
    """Recipes in the order of their runs, the last dimension of `labels` varying fastest."""

    recipes: tuple[Recipe, ...]
    decays: tuple[float, ...]
    labels: Mapping[str, np.ndarray]

    def weight_decay(self, seeds: int) -> Rate:
        """One number if all are equal, else one for every run, with seeds varying slowest."""
        return _rate(np.asarray(self.decays), seeds)

    def rates(self, steps: int, seeds: int) -> Callable[[int], Rate]:
        """The learning rate of every step, for all runs."""
        found = [one.learning_rates(steps) for one in self.recipes]
        if all(isinstance(one, float) for one in found):
            constant = _rate(np.asarray(found), seeds)
            return lambda step: constant  # noqa: ARG005
        table = np.stack([np.broadcast_to(np.asarray(one), (steps,)) for one in found])
        return lambda step: _rate(table[:, step], seeds)

    def to_json(self) -> dict[str, JSON]:
        """The one recipe, or all of them."""
        first, *more = (one.to_json() for one in self.recipes)
        return {"recipes": [first, *more]} if more else {"recipe": first}


def recipe_grid(given: Recipe | Sequence[Recipe]) -> RecipeGrid:
    """One recipe or several, if they differ only in learning rate and weight decay.

    >>> grid = recipe_grid([Recipe(lr=rate, steps=10) for rate in (0.1, 0.2)])
    >>> grid.labels
    {'lr': array([0.1, 0.2])}
    """
    recipes = (given,) if isinstance(given, Recipe) or not isinstance(given, Sequence) else tuple(given)
    if not recipes:
        raise ValueError("`recipe` should be a Recipe or several. Found an empty list.")
    for one in recipes:
        refuse_elsewhere(checked_recipe(one).interventions, "ensemble")
        refuse_run_as(one, "`ensemble`")
    for one in recipes[1:]:
        _check_alike(recipes[0], one)
    values = {name: [_setting(one, name) for one in recipes] for name in VARY}
    return RecipeGrid(recipes, tuple(values["weight_decay"]), _dimensions(recipes, values))


def _dimensions(recipes: tuple[Recipe, ...], values: Mapping[str, list[float]]) -> dict[str, np.ndarray]:
    if len(recipes) == 1:
        return {}
    first = recipes[0]
    if any("schedule" in different_parts(first, one) for one in recipes):
        return {"recipe": np.arange(len(recipes))}
    if first.schedule is not None and is_function_of_step(first.schedule):
        values = {**values, "lr": [0.0 for _ in recipes]}  # the schedule gives the rates, the same for all
    return _labels(values)


def _labels(values: Mapping[str, list[float]]) -> dict[str, np.ndarray]:
    """Return dimensions `lr` and `weight_decay` if the recipes form a grid in this order, else `recipe`."""
    axes = {name: np.asarray(list(dict.fromkeys(column))) for name, column in values.items()}
    axes = {name: axis for name, axis in axes.items() if len(axis) > 1}
    pairs = list(zip(*values.values(), strict=True))
    if not axes or len(set(pairs)) < len(pairs):
        return {"recipe": np.arange(len(pairs))}
    mesh = np.meshgrid(*axes.values(), indexing="ij")
    full = len(mesh[0].ravel()) == len(pairs) and all(
        np.array_equal(part.ravel(), values[name]) for name, part in zip(axes, mesh, strict=True)
    )
    return axes if full else {"recipe": np.arange(len(pairs))}


def _check_alike(one: Recipe, other: Recipe) -> None:
    first, second = (_without_rates(recipe) for recipe in (one, other))
    for name in different_parts(first, second):
        was, now = (recipe.to_json().get(name) for recipe in (first, second))
        raise ValueError(
            f"Recipes of one ensemble may differ in lr, weight_decay and schedule. Found another `{name}`: "
            f"{was!r:.80} and {now!r:.80}."
        )


def _without_rates(recipe: Recipe) -> Recipe:
    if recipe.optimiser is None:
        return replace(recipe, lr=1.0, weight_decay=0.0, schedule=None)
    base, settings = unwrapped(recipe.optimiser)
    kept = {name: value for name, value in settings.items() if name not in VARY}
    return replace(recipe, optimiser=partial(base, **kept), schedule=None)


def _setting(recipe: Recipe, name: str) -> float:
    if recipe.optimiser is None:
        return float(getattr(recipe, name) or 0.0)
    made = recipe.make_optimiser([torch.zeros(1, requires_grad=True)])
    return float(made.param_groups[0].get(name, 0.0))


def _rate(values: Any, seeds: int) -> Rate:
    if (values == values[0]).all():
        return float(values[0])
    return torch.as_tensor(np.tile(values, seeds))
