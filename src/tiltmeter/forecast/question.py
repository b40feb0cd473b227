"""Question: the parts of a recipe that the kernel forecast needs, checked against the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tiltmeter.data.example_weights import example_weights
from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.targets import checked_loss, fitting_loss, known_loss
from tiltmeter.losses import CrossEntropy, Loss
from tiltmeter.recipe.plain_sgd import PlainSGD
from tiltmeter.recipe.recipe import Recipe, checked_recipe


@dataclass(frozen=True)
class Question:
    """What the closed form needs of a recipe. `batch` is None if every update sees all points."""

    sgd: PlainSGD
    loss: Loss | CrossEntropy
    batch: int | None
    weights: Mapping[Any, float] | None
    proportions: Mapping[Any, float] | None


def question_of(recipe: Recipe, points: int, sample: GroupedData, outputs: int) -> Question:
    """Return the question that this recipe asks of a network with this many outputs and training points."""
    sgd = checked_recipe(recipe).plain_sgd(points)
    loss = fitting_loss(outputs, len(sample.labels)) if recipe.loss is None else recipe.loss
    size = recipe.batch_size(points)
    batch = None if size >= points else size
    return Question(sgd, checked_loss(loss, outputs), batch, recipe.weights, recipe.drawn)


def check_before_work(recipe: Recipe, train: GroupedData) -> None:
    """Check a recipe before the kernels are computed, which may take minutes."""
    checked_recipe(recipe).plain_sgd(len(train))
    if recipe.loss is not None:
        known_loss(recipe.loss)
    found = example_weights(train, recipe.weights)
    if found is not None and not found.any():
        raise ValueError("`weights` should leave a point to learn from. Found that all are zero.")
    recipe.batches(train)
