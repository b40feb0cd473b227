"""Linear head: a forecast of networks of which only a last linear layer learns; its features are computed once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.rehearsal import Means, forecast_by_rehearsals
from tiltmeter.forecast.task import ForecastTask, modules_of
from tiltmeter.interventions.group_intervention import GroupIntervention
from tiltmeter.interventions.kinds import PointIntervention, TermIntervention
from tiltmeter.modules.forward import answer, flat_scores, like_weights
from tiltmeter.modules.untouched import untouched
from tiltmeter.recipe.lowered import lowered_recipe
from tiltmeter.recipe.recipe import Recipe

#: Points that go through the backbone together.
CHUNK = 256
#: What a network does otherwise in training than in evaluation.
OTHERWISE = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)


def learning_head(model: nn.Module) -> nn.Linear | None:
    """The one layer that learns, if it is a Linear layer.

    >>> network = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    >>> learning_head(network) is None
    True
    >>> _ = network[0].requires_grad_(False)
    >>> learning_head(network)
    Linear(in_features=8, out_features=1, bias=True)
    """
    learning = [module for module in model.modules() if any(p.requires_grad for p in module.parameters(recurse=False))]
    if len(learning) != 1 or type(learning[0]) is not nn.Linear:
        return None
    head = learning[0]
    return head if all(p.requires_grad for p in head.parameters()) else None


def head_refusal(task: ForecastTask) -> str | None:
    """Why the training is not that of a linear head; None if it is."""
    head = learning_head(task.model)
    if head is None:
        return "`model` should have one Linear layer that learns. Found others: Rehearsal takes it as it is."
    if task.recipe.run_as:
        return f"The features of a head are computed plainly. Found {task.recipe.run_as}: Rehearsal takes it."
    if next(modules_of(task.model, *OTHERWISE), None) is not None:
        return "`model` should do the same in training as in evaluation. Found dropout or batch normalisation."
    if task.recipe.interventions and not _only_weighs(lowered_recipe(task.recipe, task.train)):
        name = type(task.recipe.interventions[0]).__name__
        return f"The features of a head are not the points that {name} changes: Rehearsal takes it."
    few = task.train.take(range(min(8, len(task.train))))
    with untouched(task.model):
        points = like_weights(task.model, few.tensor_points()[0])
        inputs: list[Tensor] = []
        hook = head.register_forward_pre_hook(lambda _, given: inputs.append(given[0]))
        try:
            scores = flat_scores(answer(task.model, points), len(few), task.watch.read)
        finally:
            hook.remove()
        if len(inputs) != 1 or inputs[0].ndim != 2 or len(inputs[0]) != len(few):
            return "The layer that learns should see every point once. Found that it does not."
        alone = flat_scores(head(inputs[0]), len(few), None)
        last = alone.shape == scores.shape and torch.equal(alone, scores)
    return None if last else "The layer that learns should give the scores. Found that something follows it."


def _only_weighs(recipe: Recipe) -> bool:
    """Whether all interventions act by weights of groups or points, which the features of points do not change."""
    return all(
        (isinstance(law, PointIntervention) and not isinstance(law, TermIntervention))
        or (isinstance(law, GroupIntervention) and not law.sees_gram and law.by == "weights")
        for law in recipe.interventions
    )


def head_task(task: ForecastTask) -> ForecastTask:
    """The training of the head alone, on the features of the backbone."""
    head = learning_head(task.fresh_model())
    assert head is not None
    train, held_out = (data.with_points(_features(task.model, data)) for data in (task.train, task.held_out))
    watch = replace(task.watch, read=None)
    return replace(task, model=head, train=train, held_out=held_out, watch=watch, make=None)


def _features(model: nn.Module, data: GroupedData) -> Tensor:
    """What the head sees of every point."""
    head = learning_head(model)
    assert head is not None
    found: list[Tensor] = []
    x = data.tensor_points()[0]
    with untouched(model):
        hook = head.register_forward_pre_hook(lambda _, given: found.append(given[0].detach().cpu()))
        try:
            for first in range(0, len(data), CHUNK):
                answer(model, like_weights(model, x[first : first + CHUNK]))
        finally:
            hook.remove()
    return torch.cat(found)


def head_cost(task: ForecastTask, copies: int) -> float:
    """Seconds of the features of all points, timed on a few, and of the trainings of the head."""
    few = task.train.take(range(min(CHUNK, len(task.train))))
    begin = task.clock()
    features = _features(task.model, few)
    each = (task.clock() - begin) / len(few)
    head = learning_head(task.fresh_model())
    assert head is not None
    part, watch = few.with_points(features), replace(task.watch, read=None)
    recipe = task.recipe if isinstance(task.recipe.order, int | None) else replace(task.recipe, order=None)
    recipe = replace(recipe, steps=task.steps, epochs=None, batch=min(recipe.batch_size(len(task.train)), len(few)))
    short = replace(task, model=head, train=part, held_out=part, watch=watch, recipe=recipe, make=None)
    price = short.price
    evaluations = price.evaluation * len(task.evaluations) * len(task.held_out) / len(part)
    return each * (len(task.train) + len(task.held_out)) + copies * (price.loop + evaluations)


def forecast_by_head(task: ForecastTask, copies: int, seed: int, means: Means) -> tuple[Any, ...]:
    """Rehearsals of the head; the backbone is passed once for every point."""
    runs, promise, account = forecast_by_rehearsals(head_task(task), copies, "order", seed, means)
    exact = replace(promise, sentence=f"{promise.sentence}; only a linear head learns, which is followed exactly")
    return runs, exact, {**account, "exact": "only a linear head learns"}
