"""Side by side: twins that are stacks of Linear layers, trained in one pass by batched products."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.gathered_looks import KEPT, GatheredLooks
from tiltmeter.forecast.score_slopes import ScoreSlopes, score_slopes
from tiltmeter.forecast.twin.joined_update import JoinedUpdate
from tiltmeter.forecast.twin.places import Shifted, by_place
from tiltmeter.forecast.twin.quick_gradients import QuickGradients
from tiltmeter.forecast.twin.stacked_rates import Rates
from tiltmeter.forecast.twin.twins import ScaledTwin
from tiltmeter.measures.answers import Answers
from tiltmeter.measures.point_loss import point_loss
from tiltmeter.measures.snapshot import Measure
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Origin, Recorder, Trajectory
from tiltmeter.training.network_laws import NetworkLaws
from tiltmeter.training.point_keeper import PointKeeper
from tiltmeter.training.pull_curve import PullCurve
from tiltmeter.training.stacked import Stacked
from tiltmeter.training.stacked_linear_layers import linear_layers
from tiltmeter.training.stacked_loop import stacked_batches, train_stacked
from tiltmeter.training.stacked_loss import stacked_loss
from tiltmeter.training.stacked_observations import StackedObservations
from tiltmeter.training.steering import Steering


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


def train_side_by_side(
    twins: Sequence[ScaledTwin],
    shifts: Sequence[Shifted],
    recipe: Recipe,
    rates: Rates,
    seeds: Sequence[int],
    train: GroupedData,
    look: GroupedData,
    watch: Watch,
    measures: Sequence[Measure],
    answers: Answers,
    asked: Recipe,
) -> Trajectory:
    """The curves of all twins with a dimension `seed` of their numbers; each twin as `train` would train it.

    `recipe` has the constant laws of `asked` as weights and proportions.
    """
    laws = NetworkLaws(steering=tuple(recipe.interventions))  # type: ignore[arg-type]  # checked by `stackable`
    laws.check_loss(answers.loss)
    chains = [chain(twin.network) for twin in twins]
    # Twins that share the order share the batch.
    orders = list(dict.fromkeys(recipe.batch_seed(seed) for seed in seeds))
    stack = ShiftedStack([one for one in chains if one is not None], shifts, shared=len(orders) == 1)
    total = recipe.total_steps(len(train))
    own = by_place(train, look)
    like = next(twins[0].network.parameters())
    each = point_loss(answers.given, answers_like(stack, own[0], answers), _labels(own[0], answers), _all_labels(train))
    runs = {"seed": np.arange(stack.runs)} if stack.runs > 1 else {}
    looks = sorted({*watch.when.steps(total), total})
    steering = Steering(laws.steering, train, proportions=recipe.drawn, runs=stack.runs) if laws.steering else None
    pull = PullCurve.of(asked, train, steering)
    keeper = PointKeeper(look, runs, end=total) if watch.points else None
    places = torch.as_tensor(own[0].x, device=like.device)
    batches = stacked_batches(recipe.batches(train), train, recipe.batch_size(len(train)), orders)
    names = tuple(range(stack.runs)) if stack.runs > 1 else ()
    update = JoinedUpdate(twins[0], rates, recipe.clip)
    slopes = None if steering is not None else score_slopes(each, train, recipe.weights, like)

    def follow(observe: Callable[[int], bool]) -> None:
        if slopes is not None and QuickGradients.known(stack.layers):
            stack.train(slopes, update, batches, looks, observe)
            return
        train_stacked(
            stack,  # type: ignore[arg-type]  # a stack in all that is asked of it
            update,
            lambda step: float(step),  # the update looks its own rates up
            batches,
            places,
            stacked_loss(each, train, recipe.weights, like, steering),
            looks,
            observe,
        )

    origin = Origin("forecast", seeds=names)
    numbers = len(looks) * len(look) * stack.runs * answers.task.outputs
    if keeper is None and pull is None and numbers <= KEPT:
        gathered = GatheredLooks(lambda: stack.look_scores(answers.chunk))
        follow(gathered)
        return gathered.trajectory(answers, measures, runs, origin)
    with Recorder(None, clock="step", origin=origin) as recorder:
        seen = torch.as_tensor(own[1].x, device=like.device)
        follow(StackedObservations(stack, answers, measures, seen, runs, recorder, keeper, pull))  # type: ignore[arg-type]
        return recorder.trajectory()


class ShiftedStack:
    """Several chains at once, at places among the points, plus what is known of each place for each of them."""

    def __init__(self, chains: Sequence[nn.Module], shifts: Sequence[Shifted], shared: bool) -> None:
        self._shared = shared  # all chains have the same batch
        self._stacked = Stacked(chains)
        points = shifts[0].points
        self._count = points.count
        self._x = points.train.flatten(1), points.look.flatten(1)
        added = [shift.points.added for shift in shifts]
        known = [one.reshape(len(one), -1) for one in added if one is not None]
        self._added = torch.stack(known) if known else None
        self.runs, self.parameters, self.layers = self._stacked.runs, self._stacked.parameters, self._stacked.layers

    def differentiate(self, places: Tensor, loss: Callable[[Tensor], Tensor]) -> Any:
        """As `Stacked.differentiate`, at places (runs, batch, 1)."""
        x, added = self._gathered(places[..., 0])
        if added is None:
            return self._stacked.differentiate(x, loss)
        return self._stacked.differentiate(x, lambda outputs: loss(outputs + added))

    def look_scores(self, chunk: int) -> Tensor:
        """The scores of all runs at all points to look at, (runs, points, outputs)."""
        parts = [self._stacked.evaluate(part) for part in torch.split(self._x[1], chunk)]
        found = parts[0] if len(parts) == 1 else torch.cat(parts, 1)
        return found if self._added is None else found.add_(self._added[:, self._count :])

    @torch.no_grad()
    def train(
        self,
        slopes: ScoreSlopes,
        update: JoinedUpdate,
        batches: Iterator[Tensor],
        looks: Sequence[int],
        look: Callable[[int], bool],
    ) -> None:
        """As `train_stacked`, where the derivatives of the loss and of all layers are known."""
        differentiate = QuickGradients(self._stacked, slopes)
        take = update.bound(self.parameters, differentiate.gradients)
        device, step = self._x[0].device, 0
        for stop in looks:
            while step < stop:
                places = next(batches).to(device)
                differentiate(*self._gathered(places), places)
                take(step)
                step += 1
            if not look(step):
                return

    def _gathered(self, places: Tensor) -> tuple[Tensor, Tensor | None]:
        """The points at places (runs or 1, batch), and what is added to their scores."""
        if self._shared:
            x = self._x[0].index_select(0, places[0])[None]
            return x, None if self._added is None else self._added.index_select(1, places[0])
        runs = torch.arange(self.runs, device=places.device)[:, None]
        return self._x[0][places], None if self._added is None else self._added[runs, places]

    def evaluate(self, places: Tensor) -> Tensor:
        """As `Stacked.evaluate`, at places (points, 1) to look at or to train on."""
        where = places[:, 0]
        first = bool(where[0] < self._count)
        found = self._stacked.evaluate(self._x[0][where] if first else self._x[1][where - self._count])
        return found if self._added is None else found + self._added[:, where]


def answers_like(stack: ShiftedStack, data: GroupedData, answers: Answers) -> Tensor:
    """The scores of a few points, on which the loss is tried."""
    found: Tensor = stack.evaluate(torch.as_tensor(data.x[:8]))[0]
    return found[:, 0] if answers.task.outputs == 1 else found


def _labels(data: GroupedData, answers: Answers) -> Tensor:
    y: Tensor = data.tensors()[1][:8]
    return y.float() if answers.task.outputs == 1 else y.long()


def _all_labels(data: GroupedData) -> list[float]:
    return [float(label) for label in data.labels]
