"""Side by side: twins that are stacks of Linear layers, for one recipe or several, trained in one pass."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.curves import KEPT, GatheredEvaluations, forecast_measures
from tiltmeter.forecast.task import ForecastTask
from tiltmeter.forecast.twin.joined_update import JoinedUpdate, Rates, ScoreSlopes, score_slopes
from tiltmeter.forecast.twin.twins import ScaledTwin, Shifted, by_place
from tiltmeter.interventions.group_intervention import GroupIntervention
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.kinds import (
    BatchIntervention,
    DataIntervention,
    ModelIntervention,
    PointIntervention,
    StepIntervention,
    TermIntervention,
)
from tiltmeter.measures.answers import Answers
from tiltmeter.measures.point_keeper import PointKeeper
from tiltmeter.measures.point_loss import PointLoss, point_loss
from tiltmeter.recipe.lowered import lowered_recipe
from tiltmeter.recipe.recipe import Recipe, different_parts
from tiltmeter.record import Origin, Recorder, Trajectory
from tiltmeter.threads import SMALL, one_thread
from tiltmeter.training.network_interventions import NetworkInterventions, check_needs
from tiltmeter.training.stacked import Stacked
from tiltmeter.training.stacked_linear_layers import BACK, Affine, Layer, linear_layers
from tiltmeter.training.stacked_loop import StackedObservations, stacked_batches, stacked_loss, train_stacked
from tiltmeter.training.steering import PullCurve, Steering

#: The name of a recipe among several.
Name = TypeVar("Name", bound=Hashable)


def check_twin_interventions(recipe: Recipe) -> None:
    """Refuse the few interventions that act on a narrow network in another way than on a wide one.

    An intervention that delivers another model fits it to the features of the network, of which a twin has fewer; so
    does one with a term of features. A step of somebody else's may depend on the number of weights."""
    for law in recipe.interventions:
        if isinstance(law, PointIntervention) and _sees_network(law):
            raise ValueError(f"A twin has other features and knows points by their places. {_found(law)}")
        if isinstance(law, ModelIntervention):
            raise ValueError(
                f"A twin delivers no other model: {type(law).__name__} would fit its few features. `train` applies it."
            )
        if isinstance(law, StepIntervention) and not _own(law):
            raise ValueError(f"A twin knows the steps of tiltmeter's interventions only. {_found(law)}")


def needs_points(recipe: Recipe) -> bool:
    """Whether an intervention makes new points, so that a twin cannot be given them as places among known ones."""
    return any(
        isinstance(law, BatchIntervention) or (isinstance(law, DataIntervention) and not _own(law))
        for law in recipe.interventions
    )


def stackable(recipe: Recipe) -> bool:
    """Whether all interventions can be applied to several twins at once: those of groups by weights, and of points."""
    return all(
        (isinstance(law, PointIntervention) and not isinstance(law, TermIntervention))
        or (isinstance(law, GroupIntervention) and not law.sees_gram and law.by == "weights")
        for law in recipe.interventions
    )


def _own(law: Intervention) -> bool:
    return type(law).__module__.startswith("tiltmeter.")


def _sees_network(law: PointIntervention) -> bool:
    """Whether an intervention sees points or features, or has a module of its own: a twin has others."""
    return isinstance(law, TermIntervention) and bool(law.sees & {"inputs", "features"})


def _found(law: Intervention) -> str:
    return f"Found {type(law).__name__}: `train` applies it."


#: Parts of a recipe that may differ between twins trained together.
OWN_PARTS = frozenset({"weights", "interventions"})


@dataclass(frozen=True, eq=False)
class AskedRecipe:
    """`lowered` has the constant interventions of `asked` as weights and proportions."""

    asked: Recipe
    lowered: Recipe

    @classmethod
    def of(cls, recipe: Recipe, train: GroupedData) -> AskedRecipe:
        """Lower a recipe; interventions that no twin can follow are refused."""
        lowered = lowered_recipe(recipe, train)
        check_twin_interventions(lowered)
        check_needs(recipe.interventions, train, None)
        return cls(recipe, lowered)

    def shares_twins_with(self, other: AskedRecipe) -> bool:
        """Whether twins of both see the same batches and take their steps alike, so that one stack can train them.

        Recipes without interventions need less of the untrained network, so they are not mixed with others.
        """
        one, two = self.lowered, other.lowered
        alike = bool(self.asked.interventions) == bool(other.asked.interventions)
        return alike and stackable(one) and stackable(two) and OWN_PARTS.issuperset(different_parts(one, two))


def families(recipes: Mapping[Name, AskedRecipe]) -> Iterator[dict[Name, AskedRecipe]]:
    """Recipes that share twins, together; every other by itself."""
    left = dict(recipes)
    while left:
        first = next(iter(left))
        found = {name: one for name, one in left.items() if name == first or one.shares_twins_with(left[first])}
        left = {name: one for name, one in left.items() if name not in found}
        yield found


#: Losses of all members from their outputs and the places of their points.
Losses: TypeAlias = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class RecipeBlock:
    """`loss` is that of each point; `losses` are those of the block's twins, with the state of its interventions in
    `steering`.

    `pull` is the curve of what groups count, for recipes that were asked for with an intervention of groups.
    """

    recipe: AskedRecipe
    loss: PointLoss
    losses: Losses
    steering: Steering | None
    pull: PullCurve | None


def recipe_block(recipe: AskedRecipe, train: GroupedData, shifts: Sequence[Shifted], answers: Answers) -> RecipeBlock:
    """What the twins of a recipe minimise; interventions that cannot read the loss or the data are refused."""
    lowered = recipe.lowered
    laws = NetworkInterventions(steering=tuple(lowered.interventions))  # type: ignore[arg-type]  # checked by `stackable`
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
    scores = network(torch.arange(len(y), device=next(network.parameters()).device)[:, None])
    one = answers.task.outputs == 1
    trial = scores[:, 0] if one and scores.ndim == 2 else scores
    return point_loss(answers.given, trial, y.float() if one else y.long(), [float(label) for label in train.labels])


class QuickGradients:
    """`gradients` holds, after a call, the gradients of all runs at a batch, by parameter."""

    def __init__(self, stacked: Stacked, slopes: ScoreSlopes) -> None:
        assert stacked.layers is not None
        self._slopes = slopes
        trained = set(stacked.trained)
        self._layers: list[_Line | _Activation] = [
            _Line(stacked, one, trained) if isinstance(one, Affine) else _Activation(one) for one in stacked.layers
        ]
        self.gradients: dict[str, Tensor] = {}
        for one in self._layers:
            if isinstance(one, _Line):
                self.gradients |= one.gradients
        # Below the first layer that is trained nothing is asked for.
        self._first = min((n for n, one in enumerate(self._layers) if isinstance(one, _Line) and one.gradients))

    @staticmethod
    def known(layers: Sequence[Layer] | None) -> bool:
        """Whether the derivatives of all of these layers are known."""
        return layers is not None and all(isinstance(one, Affine) or type(one) in BACK for one in layers)

    def __call__(self, x: Tensor, added: Tensor | None, places: Tensor) -> None:
        """At points x (runs or 1, batch, inputs), to whose scores `added` (runs, batch, outputs) is added."""
        seen = [x]
        for layer in self._layers:
            seen.append(layer(seen[-1]))
        scores = seen[-1] if added is None else seen[-1] + added
        slopes = self._slopes(scores, places)
        for place in range(len(self._layers) - 1, self._first - 1, -1):
            layer = self._layers[place]
            if isinstance(layer, _Line):
                layer.write(seen[place], slopes)
                if place == self._first:
                    return
            slopes = layer.back(slopes, seen[place + 1])


class _Activation:
    """A function of every number by itself."""

    def __init__(self, layer: Any) -> None:
        forward = {nn.ReLU: torch.relu, nn.Tanh: torch.tanh, nn.Sigmoid: torch.sigmoid}
        self._forward: Callable[[Tensor], Tensor] = forward.get(type(layer), layer)
        self._back = BACK[type(layer)]

    def __call__(self, x: Tensor) -> Tensor:
        return self._forward(x)

    def back(self, slopes: Tensor, outputs: Tensor) -> Tensor:
        """The derivatives by the inputs."""
        return self._back(slopes, outputs)


class _Line:
    """A Linear layer of all runs with views of its parameters, made once, and memory for their gradients."""

    def __init__(self, stacked: Stacked, names: Affine, trained: set[str]) -> None:
        self._weight = stacked.parameters[names.weight]
        self._flipped = self._weight.transpose(1, 2)
        self._bias = None if names.bias is None else stacked.parameters[names.bias].unsqueeze(1)
        own = [name for name in (names.weight, names.bias) if name in trained]
        self.gradients = {name: torch.empty_like(stacked.parameters[name]) for name in own if name is not None}
        self._slope = self.gradients.get(names.weight)
        self._turned = None if self._slope is None else self._slope.transpose(1, 2)
        self._offset = None if names.bias is None else self.gradients.get(names.bias)
        self._single, self._runs = self._weight.shape[1] == 1, len(self._weight)

    def __call__(self, x: Tensor) -> Tensor:
        if self._single:
            score = (x * self._weight).sum(-1, keepdim=True)
            return score if self._bias is None else score.add_(self._bias)
        x = x.expand(self._runs, -1, -1)
        return x.bmm(self._flipped) if self._bias is None else torch.baddbmm(self._bias, x, self._flipped)

    def write(self, inputs: Tensor, slopes: Tensor) -> None:
        """The gradients, from the layer's inputs and the derivatives by its outputs."""
        if self._slope is not None:
            if self._single:
                torch.sum(slopes * inputs, 1, keepdim=True, out=self._slope)
            else:
                torch.bmm(inputs.expand(self._runs, -1, -1).transpose(1, 2), slopes, out=self._turned)
        if self._offset is not None:
            torch.sum(slopes, 1, out=self._offset)

    def back(self, slopes: Tensor, outputs: Tensor) -> Tensor:  # noqa: ARG002
        """The derivatives by the inputs."""
        return slopes * self._weight if self._single else slopes.bmm(self._weight)


class ShiftedStack:
    """Several chains at once, plus what is known of each place for each of them.

    The members are all chains for the first recipe, then all for the next, and so on: `copies` recipes in all. With
    `shared`, all members have the same batch.
    """

    def __init__(self, chains: Sequence[nn.Module], shifts: Sequence[Shifted], shared: bool, copies: int = 1) -> None:
        self._shared, self._copies, self._chains = shared, copies, len(chains)
        self._stacked = Stacked([one for _ in range(copies) for one in chains])
        points = shifts[0].points
        self._count = points.count
        self._x = points.train.flatten(1), points.held_out.flatten(1)
        added = [shift.points.added for shift in shifts]
        known = [one.reshape(len(one), -1) for one in added if one is not None]
        # (points, chains, outputs), the same for all recipes: what is added at a point lies together.
        self._added = torch.stack(known, 1) if known else None

    @property
    def runs(self) -> int:
        """How many members there are."""
        return self._stacked.runs

    @property
    def parameters(self) -> dict[str, Tensor]:
        """Those of all members, stacked."""
        return self._stacked.parameters

    @property
    def quick(self) -> bool:
        """Whether the derivatives of all layers are known."""
        return QuickGradients.known(self._stacked.layers)

    def members(self, number: int) -> slice:
        """The places of a recipe's members in the stack."""
        return slice(number * self._chains, (number + 1) * self._chains)

    def of_recipe(self, number: int) -> ShiftedStack:
        """The members of one recipe by themselves, on the same memory: they move with the stack."""
        if self._copies == 1:
            return self
        own = copy.copy(self)
        own._copies, own._stacked = 1, copy.copy(self._stacked)
        part = self.members(number)
        own._stacked.parameters = {name: value[part] for name, value in self._stacked.parameters.items()}
        own._stacked.runs = self._chains
        return own

    def differentiate(self, places: Tensor, loss: Callable[[Tensor], Tensor]) -> Any:
        """As `Stacked.differentiate`, at places (runs, batch, 1)."""
        x, added = self._gathered(places[..., 0])
        if added is None:
            return self._stacked.differentiate(x, loss)
        return self._stacked.differentiate(x, lambda outputs: loss(outputs + added))

    def held_out_scores(self, chunk: int) -> Tensor:
        """The scores of all runs at all points to look at, (runs, points, outputs)."""
        parts = [self._stacked.evaluate(part) for part in torch.split(self._x[1], chunk)]
        found = parts[0] if len(parts) == 1 else torch.cat(parts, 1)
        return found if self._added is None else found.add_(self._for_all(self._added[self._count :]))

    def evaluate(self, places: Tensor) -> Tensor:
        """As `Stacked.evaluate`, at places (points, 1) to look at or to train on."""
        where = places[:, 0]
        first = bool(where[0] < self._count)
        found = self._stacked.evaluate(self._x[0][where] if first else self._x[1][where - self._count])
        return found if self._added is None else found + self._for_all(self._added[where])

    @torch.no_grad()
    def train(
        self,
        slopes: ScoreSlopes,
        update: JoinedUpdate,
        batches: Iterator[Tensor],
        evaluations: Sequence[int],
        evaluate: Callable[[int], bool],
    ) -> None:
        """As `train_stacked`, where the derivatives of the loss and of all layers are known."""
        differentiate = QuickGradients(self._stacked, slopes)
        take = update.bound(self.parameters, differentiate.gradients)
        device, step = self._x[0].device, 0
        for stop in evaluations:
            while step < stop:
                places = next(batches).to(device)
                differentiate(*self._gathered(places), places)
                take(step)
                step += 1
            if not evaluate(step):
                return

    def _gathered(self, places: Tensor) -> tuple[Tensor, Tensor | None]:
        """The points at places (runs or 1, batch), and what is added to their scores."""
        if self._shared:
            x = self._x[0].index_select(0, places[0])[None]
            return x, None if self._added is None else self._for_all(self._added.index_select(0, places[0]))
        chains = torch.arange(self._chains, device=places.device).repeat(self._copies)[:, None]
        return self._x[0][places], None if self._added is None else self._added[places, chains]

    def _for_all(self, added: Tensor) -> Tensor:
        """What is known of some points for every chain, as (members, points, outputs)."""
        each = added.transpose(0, 1)
        return each if self._copies == 1 else each.repeat(self._copies, 1, 1)


class Observed(NamedTuple):
    """How the members of one recipe are looked at, and how their curves are read at the end."""

    evaluate: Callable[[int], bool]
    read: Callable[[], Trajectory]


class StackedCurves:
    """Evaluations at the members of every recipe by themselves, as long as one of them has not diverged.

    `going` are the numbers of the recipes of which that is so. Scores are kept and read together at the end where
    nothing else is needed and they fit in memory.
    """

    def __init__(
        self,
        task: ForecastTask,
        answers: Answers,
        stack: ShiftedStack,
        blocks: Sequence[RecipeBlock],
        evaluations: Sequence[int],
    ) -> None:
        fits = len(evaluations) * len(task.held_out) * stack.runs * answers.task.outputs <= KEPT
        self._observed = [
            _gathered(task, answers, own)
            if fits and not task.watch.points and block.pull is None
            else _recorded(task, answers, own, block, evaluations[-1])
            for own, block in ((stack.of_recipe(number), block) for number, block in enumerate(blocks))
        ]
        self.going = list(range(len(blocks)))

    def __call__(self, step: int) -> bool:
        """Evaluate after `step` updates; return whether any member goes on."""
        self.going = [number for number in self.going if self._observed[number].evaluate(step)]
        return bool(self.going)

    def trajectories(self) -> list[Trajectory]:
        """The curves of every recipe."""
        return [one.read() for one in self._observed]


def _gathered(task: ForecastTask, answers: Answers, own: ShiftedStack) -> Observed:
    evaluations = GatheredEvaluations(lambda: own.held_out_scores(answers.chunk))
    return Observed(
        evaluations, lambda: evaluations.trajectory(answers, forecast_measures(task.watch), _seeds(own), _origin(own))
    )


def _recorded(task: ForecastTask, answers: Answers, own: ShiftedStack, block: RecipeBlock, end: int) -> Observed:
    recorder = Recorder(None, clock="step", origin=_origin(own))
    keeper = PointKeeper(task.held_out, _seeds(own), end=end) if task.watch.points else None
    places = torch.as_tensor(by_place(task.train, task.held_out)[1].x, device=task.x[1].device)
    members: Any = own  # a stack in all that is asked of it
    measures = forecast_measures(task.watch)
    held_out = StackedObservations(members, answers, measures, places, _seeds(own), recorder, keeper, block.pull)
    return Observed(held_out, recorder.trajectory)


def _seeds(own: ShiftedStack) -> dict[str, np.ndarray]:
    return {"seed": np.arange(own.runs)} if own.runs > 1 else {}


def _origin(own: ShiftedStack) -> Origin:
    return Origin("forecast", seeds=tuple(range(own.runs)) if own.runs > 1 else ())


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


def train_side_by_side(task: ForecastTask, shared: StackedTwins, blocks: Sequence[RecipeBlock]) -> list[Trajectory]:
    """The curves of all twins for every recipe, with a dimension `seed` of the twins' numbers where there are several.

    Every twin is trained as `train` would train it. Either all blocks are steered by interventions, or none is.
    """
    recipe = blocks[0].recipe.lowered  # where it matters here, the others are the same
    # Twins that share the order share the batch.
    own = [recipe.batch_seed(seed) for seed in shared.seeds]
    orders = list(dict.fromkeys(own))
    chains = [one for one in map(chain, (twin.network for twin in shared.twins)) if one is not None]
    stack = ShiftedStack(chains, shared.shifts, len(orders) == 1, len(blocks))
    total = recipe.total_steps(len(task.train))
    evaluations = sorted({*task.watch.when.steps(total), total})
    sampling, size = recipe.batches(task.train), recipe.batch_size(len(task.train))
    members = torch.as_tensor([orders.index(one) for one in own]).repeat(len(blocks))
    batches = _for_all(stacked_batches(sampling, task.train, size, orders), members)
    update = JoinedUpdate(shared.twins[0], shared.rates, recipe.clip)
    like = next(iter(stack.parameters.values()))
    slopes = None
    if stack.quick and not any(block.steering for block in blocks):
        weights = [block.recipe.lowered.weights for block in blocks for _ in chains]
        slopes = score_slopes(blocks[0].loss, task.train, weights, like)
    curves = StackedCurves(task, shared.answers, stack, blocks, evaluations)
    weights_in_all = sum(value.numel() for value in stack.parameters.values())
    with one_thread(weights_in_all * size <= SMALL):
        if slopes is not None:
            stack.train(slopes, update, batches, evaluations, curves)
        else:
            train_stacked(
                stack,  # type: ignore[arg-type]  # a stack in all that is asked of it
                update,
                lambda step: float(step),  # the update looks its own rates up
                batches,
                torch.as_tensor(by_place(task.train, task.held_out)[0].x, device=like.device),
                _losses(stack, blocks, curves),
                evaluations,
                curves,
            )
    return curves.trajectories()


def _for_all(batches: Iterator[Tensor], members: Tensor) -> Iterator[Tensor]:
    """The batch of every member, from those of all orders; a single batch is everybody's."""
    return (places if len(places) == 1 else places[members] for places in batches)


def _losses(stack: ShiftedStack, blocks: Sequence[RecipeBlock], curves: StackedCurves) -> Losses:
    """The losses of all members: every block has weights or interventions of its own, which learn nothing once it
    diverged."""
    if len(blocks) == 1:
        return blocks[0].losses
    own = [(block.losses, stack.members(number)) for number, block in enumerate(blocks)]

    def losses(outputs: Tensor, places: Tensor) -> Tensor:
        found = [loss(outputs[part], places[part]) for loss, part in (own[number] for number in curves.going)]
        return torch.cat(found)

    return losses
