"""Side by side: twins that are stacks of Linear layers, for one recipe or several, trained in one pass."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tiltmeter.forecast.score_slopes import score_slopes
from tiltmeter.forecast.twin.joined_update import JoinedUpdate
from tiltmeter.forecast.twin.places import Shifted, by_place
from tiltmeter.forecast.twin.recipe_block import Losses, RecipeBlock
from tiltmeter.forecast.twin.shifted_stack import ShiftedStack
from tiltmeter.forecast.twin.stacked_curves import StackedCurves
from tiltmeter.forecast.twin.stacked_rates import Rates
from tiltmeter.forecast.twin.twin_task import TwinTask
from tiltmeter.forecast.twin.twins import ScaledTwin
from tiltmeter.measures.answers import Answers
from tiltmeter.record import Trajectory
from tiltmeter.training.stacked_linear_layers import linear_layers
from tiltmeter.training.stacked_loop import stacked_batches, train_stacked


def chain(network: nn.Module) -> nn.Module | None:
    """The network without a first Flatten, if what is left is a stack of Linear layers and activations; else None.

    >>> chain(nn.Sequential(nn.Flatten(), nn.Linear(3, 1)))
    Sequential(
      (1): Linear(in_features=3, out_features=1, bias=True)
    )
    """
    if type(network) is nn.Sequential and len(network) and type(network[0]) is nn.Flatten:
        network = nn.Sequential(OrderedDict(list(network.named_children())[1:]))
    return network if linear_layers(network) is not None else None


@dataclass(frozen=True, eq=False)
class StackedTwins:
    """Twins that can be trained side by side, shifted to the untrained network's scores.

    `rates` and the `seeds` of batches are those of all recipes that share the twins; `answers` reads the held-out
    points.
    """

    twins: Sequence[ScaledTwin]
    shifts: Sequence[Shifted]
    rates: Rates
    seeds: Sequence[int]
    answers: Answers


def train_side_by_side(task: TwinTask, shared: StackedTwins, blocks: Sequence[RecipeBlock]) -> list[Trajectory]:
    """The curves of all twins for every recipe, with a dimension `seed` of the twins' numbers where there are several.

    Every twin is trained as `train` would train it. Either all blocks are steered by laws, or none is.
    """
    recipe = blocks[0].recipe.lowered  # where it matters here, the others are the same
    # Twins that share the order share the batch.
    own = [recipe.batch_seed(seed) for seed in shared.seeds]
    orders = list(dict.fromkeys(own))
    chains = [one for one in map(chain, (twin.network for twin in shared.twins)) if one is not None]
    stack = ShiftedStack(chains, shared.shifts, len(orders) == 1, len(blocks))
    total = recipe.total_steps(len(task.train))
    looks = sorted({*task.watch.when.steps(total), total})
    sampling, size = recipe.batches(task.train), recipe.batch_size(len(task.train))
    members = torch.as_tensor([orders.index(one) for one in own]).repeat(len(blocks))
    batches = _for_all(stacked_batches(sampling, task.train, size, orders), members)
    update = JoinedUpdate(shared.twins[0], shared.rates, recipe.clip)
    like = next(iter(stack.parameters.values()))
    slopes = None
    if stack.quick and not any(block.steering for block in blocks):
        weights = [block.recipe.lowered.weights for block in blocks for _ in chains]
        slopes = score_slopes(blocks[0].loss, task.train, weights, like)
    curves = StackedCurves(task, shared.answers, stack, blocks, looks)
    if slopes is not None:
        stack.train(slopes, update, batches, looks, curves)
    else:
        train_stacked(
            stack,  # type: ignore[arg-type]  # a stack in all that is asked of it
            update,
            lambda step: float(step),  # the update looks its own rates up
            batches,
            torch.as_tensor(by_place(task.train, task.look)[0].x, device=like.device),
            _losses(stack, blocks, curves),
            looks,
            curves,
        )
    return curves.trajectories()


def _for_all(batches: Iterator[Tensor], members: Tensor) -> Iterator[Tensor]:
    """The batch of every member, from those of all orders; a single batch is everybody's."""
    return (places if len(places) == 1 else places[members] for places in batches)


def _losses(stack: ShiftedStack, blocks: Sequence[RecipeBlock], curves: StackedCurves) -> Losses:
    """The losses of all members: every block has weights or laws of its own, which learn nothing once it diverged."""
    if len(blocks) == 1:
        return blocks[0].losses
    own = [(block.losses, stack.members(number)) for number, block in enumerate(blocks)]

    def losses(outputs: Tensor, places: Tensor) -> Tensor:
        found = [loss(outputs[part], places[part]) for loss, part in (own[number] for number in curves.going)]
        return torch.cat(found)

    return losses
