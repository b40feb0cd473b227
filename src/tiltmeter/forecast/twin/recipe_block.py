"""RecipeBlock: the twins of one recipe within a stack, whose losses are weighed or steered in its own way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.twin.asked_recipe import AskedRecipe
from tiltmeter.forecast.twin.places import Shifted
from tiltmeter.measures.answers import Answers
from tiltmeter.measures.point_loss import PointLoss, point_loss
from tiltmeter.training.network_laws import NetworkLaws
from tiltmeter.training.pull_curve import PullCurve
from tiltmeter.training.stacked_loss import stacked_loss
from tiltmeter.training.steering import Steering

#: Losses of all members from their outputs and the places of their points.
Losses: TypeAlias = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class RecipeBlock:
    """`loss` is that of each point; `losses` are those of the block's twins, with the state of its laws in `steering`.

    `pull` is the curve of what groups count, for recipes that were asked for with a law of groups.
    """

    recipe: AskedRecipe
    loss: PointLoss
    losses: Losses
    steering: Steering | None
    pull: PullCurve | None


def recipe_block(recipe: AskedRecipe, train: GroupedData, shifts: Sequence[Shifted], answers: Answers) -> RecipeBlock:
    """What the twins of a recipe minimise; laws that cannot read the loss or the data are refused."""
    lowered = recipe.lowered
    laws = NetworkLaws(steering=tuple(lowered.interventions))  # type: ignore[arg-type]  # checked by `stackable`
    laws.check_loss(answers.loss)
    like = next(shifts[0].parameters())
    loss = _tried_loss(train, shifts[0], answers)
    runs = len(shifts)
    steering = Steering(laws.steering, train, proportions=lowered.drawn, runs=runs) if laws.steering else None
    losses = stacked_loss(loss, train, lowered.weights, like, steering)
    return RecipeBlock(recipe, loss, losses, steering, PullCurve.of(recipe.asked, train, steering))


@torch.no_grad()
def _tried_loss(train: GroupedData, network: Shifted, answers: Answers) -> PointLoss:
    """The loss of each point to train on, tried on the first few of them."""
    y: Tensor = train.tensors()[1][:8]
    scores = network(torch.arange(len(y))[:, None])
    one = answers.task.outputs == 1
    trial = scores[:, 0] if one and scores.ndim == 2 else scores
    return point_loss(answers.given, trial, y.float() if one else y.long(), [float(label) for label in train.labels])
