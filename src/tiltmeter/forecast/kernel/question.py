"""Question: what the kernels need of a recipe, the targets of its loss, its limits of stability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from tiltmeter.data.example_weights import example_weights
from tiltmeter.data.group_shares import share_of
from tiltmeter.data.grouped import GroupedData
from tiltmeter.interventions.group_intervention import GroupIntervention
from tiltmeter.losses import CrossEntropy, Logistic, Loss, Square
from tiltmeter.recipe.lowered import group_intervention, lowered_recipe
from tiltmeter.recipe.plain_sgd import PlainSGD
from tiltmeter.recipe.recipe import Recipe, checked_recipe
from tiltmeter.shown_text import warn_caller
from tiltmeter.training.steering import check_groups

#: The loss to use instead of torch's own.
TWINS: dict[type, str] = {
    nn.MSELoss: "Square() with twice the learning rate, since it is half of it",
    nn.BCEWithLogitsLoss: "Logistic()",
    nn.SoftMarginLoss: "Logistic()",
    nn.CrossEntropyLoss: "CrossEntropy()",
}


def known_loss(loss: Any) -> Loss | CrossEntropy:
    """Return the loss, or refuse one whose derivative is not known."""
    if isinstance(loss, type):
        raise TypeError(f"`loss` should be a loss. Found the class {loss.__name__}: call it.")
    if not isinstance(loss, (Loss, CrossEntropy)):
        own = TWINS.get(type(loss))
        raise TypeError(
            f"`loss` of a forecast should be Square(), Logistic(), CrossEntropy() or another tiltmeter loss. "
            f"Found {type(loss).__name__}{f': use {own}' if own else ''}."
        )
    return loss


def fitting_loss(outputs: int, labels: int) -> Loss | CrossEntropy:
    """Return the loss that `train` takes if the recipe gives none."""
    if outputs > 1:
        return CrossEntropy()
    return Logistic() if labels <= 2 else Square()


def checked_loss(loss: Any, outputs: int) -> Loss | CrossEntropy:
    """Return the loss, or refuse one that does not fit this many outputs."""
    found = known_loss(loss)
    if isinstance(found, CrossEntropy) != (outputs > 1) and not isinstance(found, Square):
        count = "several outputs" if outputs > 1 else "one output"
        raise TypeError(f"{type(found).__name__}() does not fit a model with {count}.")
    return found


def targets(y: np.ndarray, outputs: int, loss: Loss | CrossEntropy, positive: float) -> np.ndarray:
    """Return what the loss compares outputs with: numbers, -1/+1, or one row per point.

    >>> targets(np.array([0, 1]), 1, Square(), 1).tolist(), targets(np.array([2, 0]), 3, Square(), 2).tolist()
    ([[0.0], [1.0]], [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    """
    if outputs > 1:
        return np.eye(outputs)[np.asarray(y, dtype=np.int64)]
    values = y.astype(float) if isinstance(loss, Square) else np.where(y == positive, 1.0, -1.0)
    return np.asarray(values[:, None])


def slope(loss: Loss | CrossEntropy, outputs: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the derivative of every point's loss with respect to its outputs, in the shape of the outputs."""
    if isinstance(loss, CrossEntropy):
        shifted = np.exp(outputs - outputs.max(-1, keepdims=True))
        return np.asarray(shifted / shifted.sum(-1, keepdims=True) - target)
    return loss.gradient(outputs, target)


def bend(loss: Loss | CrossEntropy) -> float:
    """Return a bound on the second derivative of the loss with respect to the outputs; 1 for other people's losses."""
    bounds: dict[type, float] = {Logistic: 0.25, CrossEntropy: 0.5}
    return bounds.get(type(loss), 1.0)


def stability_limit(sharpest: float, optimiser: PlainSGD) -> float | None:
    """Return the stability limit of the mean over batches, 2 (1 + momentum) / curvature; None without curvature."""
    curvature = sharpest + optimiser.weight_decay
    return 2.0 * (1.0 + optimiser.momentum) / curvature if curvature > 0 else None


def too_fast(limits: dict[str, float | None], optimiser: PlainSGD, batch: int | None) -> bool:
    """Whether the learning rate is beyond a limit; warns if it is."""
    fastest = optimiser.fastest()
    mean, noise = (limits[name] or np.inf for name in ("stability_limit", "batch_limit"))
    if fastest < min(mean, noise):
        return False
    why = "" if fastest >= mean else f" in batches of {batch}"
    what = "the forecast diverges" if fastest >= mean else "the forecast leaves this noise out"
    warn_caller(
        f"`lr` should stay below {mean if fastest >= mean else noise:.3g}, the stability limit of the linearised "
        f"network{why}. Found lr = {fastest:.3g}: {what}, and the real network will behave differently."
    )
    return True


@dataclass(frozen=True)
class Question:
    """What the closed form needs of a recipe. `batch` is None if every update sees all points."""

    sgd: PlainSGD
    loss: Loss | CrossEntropy
    batch: int | None
    weights: Mapping[Any, float] | None
    proportions: Mapping[Any, float] | None
    law: GroupIntervention | None = None


def question_of(recipe: Recipe, points: int, sample: GroupedData, outputs: int) -> Question:
    """Return the question that this recipe asks of a network with this many outputs and training points."""
    sgd = checked_recipe(recipe).plain_sgd(points)
    loss = fitting_loss(outputs, len(sample.labels)) if recipe.loss is None else recipe.loss
    size = recipe.batch_size(points)
    batch = None if size >= points else size
    law = group_intervention(recipe)
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
    law = group_intervention(recipe)
    if law is not None:
        check_groups(law, train.groups, share_of(train, recipe.drawn))
