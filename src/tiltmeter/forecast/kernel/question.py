"""Question: the parts of a recipe that the kernel forecast needs, checked against the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tiltmeter.data.example_weights import example_weights
from tiltmeter.data.group_shares import share_of
from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.kernel.targets import checked_loss, fitting_loss, known_loss
from tiltmeter.interventions.group_law import GroupLaw
from tiltmeter.losses import CrossEntropy, Loss
from tiltmeter.recipe.lowered import group_law, lowered_recipe
from tiltmeter.recipe.plain_sgd import PlainSGD
from tiltmeter.recipe.recipe import Recipe, checked_recipe
from tiltmeter.training.steering import check_groups


@dataclass(frozen=True)
class Question:
    """What the closed form needs of a recipe. `batch` is None if every update sees all points."""

    sgd: PlainSGD
    loss: Loss | CrossEntropy
    batch: int | None
    weights: Mapping[Any, float] | None
    proportions: Mapping[Any, float] | None
    law: GroupLaw | None = None


def question_of(recipe: Recipe, points: int, sample: GroupedData, outputs: int) -> Question:
    """Return the question that this recipe asks of a network with this many outputs and training points."""
    sgd = checked_recipe(recipe).plain_sgd(points)
    loss = fitting_loss(outputs, len(sample.labels)) if recipe.loss is None else recipe.loss
    size = recipe.batch_size(points)
    batch = None if size >= points else size
    law = group_law(recipe)
    if law is not None and law.sees_gram and batch is not None:
        raise ValueError(
            f"`forecast` applies {type(law).__name__} to full batches, batch=None: the gradients of small batches are "
            "mostly noise, which the kernel leaves out. Use `train`."
        )
    return Question(sgd, checked_loss(loss, outputs), batch, recipe.weights, recipe.drawn, law)


def check_before_work(recipe: Recipe, train: GroupedData) -> None:
    """Check a recipe before the kernels are computed, which may take minutes."""
    checked_recipe(recipe).plain_sgd(len(train))
    if recipe.loss is not None:
        known_loss(recipe.loss)
    found = example_weights(train, recipe.weights)
    if found is not None and not found.any():
        raise ValueError("`weights` should leave something to train on. Found 0 for every point.")
    lowered_recipe(recipe, train).batches(train)
    law = group_law(recipe)
    if law is not None:
        check_groups(law, train.groups, share_of(train, recipe.drawn))
