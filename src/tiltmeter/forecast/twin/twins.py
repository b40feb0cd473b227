"""Twins: narrow networks, scaled to learn as the wide one does and shifted to begin at its outputs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.batch_statistics import fresh
from tiltmeter.forecast.twin.cut import Cut, cut
from tiltmeter.forecast.twin.layers import Shares
from tiltmeter.forecast.twin.rule import Kind, Scale, fused_adam_options, kind_of, scale_of
from tiltmeter.forecast.twin.untrained import Untrained
from tiltmeter.modules.forward import Read, flat_scores
from tiltmeter.modules.untouched import deep_copy
from tiltmeter.progress import Progress
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory, stack
from tiltmeter.training.loop import train as train_model


@dataclass(frozen=True, eq=False)
class ResumeState:
    """The updates made, the optimiser with its memory, and the state of the schedule."""

    step: int
    optimiser: Any
    schedule: Mapping[str, Any]

    def take_up_groups(self, optimiser: Any) -> None:
        """Give the groups of another optimiser the rates and settings that those of this one have by now."""
        for group, source in zip(optimiser.param_groups, self.optimiser.param_groups, strict=True):
            group |= {key: value for key, value in source.items() if key != "params"}


#: Settings beside the rate that a scheduler of torch may change.
FOLLOWED = ("momentum", "betas")


def scaled_recipe(
    recipe: Recipe,
    model: nn.Module,
    scales: Mapping[str, Scale],
    kind: Kind,
    steps: int,
    resume_state: ResumeState | None = None,
) -> Recipe:
    """A recipe for `train` under which the twin `model` learns as the wide network under `recipe`.

    With `resume_state`, rates and schedule go on from there.
    """
    names = [name for name, _ in model.named_parameters()]
    pieces = partial(_pieces, recipe, [scales.get(name, Scale()) for name in names], kind, resume_state)
    schedule = None if recipe.schedule is None else partial(Follower, recipe, steps, resume_state)
    short: dict[str, Any] = {"lr": None, "momentum": 0.0, "nesterov": False, "weight_decay": 0.0}
    return replace(recipe, optimiser=pieces, schedule=schedule, clip=None, **short)


def _pieces(
    recipe: Recipe, scales: list[Scale], kind: Kind, resume_state: ResumeState | None, parameters: Iterable[Any]
) -> Any:
    """The user's optimiser, its groups split by the factors of their parameters."""
    given = list(parameters)
    made = recipe.make_optimiser(given)
    if resume_state is not None:
        resume_state.take_up_groups(made)
    by_id = {id(parameter): scale for parameter, scale in zip(given, scales, strict=True)}
    groups = list(made.param_groups)
    made.param_groups.clear()
    for number, group in enumerate(groups):
        parts: dict[Scale, list[Any]] = {}
        for parameter in group["params"]:
            parts.setdefault(by_id[id(parameter)], []).append(parameter)
        for scale, members in parts.items():
            own = {**group, "params": members, "_own": number, "_rate": rate_factor(scale, kind)}
            # What interventions of steps need to know, see interventions.shared.uphill.
            own |= {"gradient_norm": scale.norm, "gradient_step": scale.proportional_rate}
            made.add_param_group({**own, **scaled_settings(group, scale, kind), **fused_adam_options(made, group)})
    # The schedule runs on groups as the user made them: a smallest rate, or a cycle, is then the user's own.
    made.reference = recipe.make_optimiser([one.detach().clone().requires_grad_() for one in given])
    if recipe.clip is not None:
        made.register_step_pre_hook(_clipping(recipe.clip))
    return made


def scaled_settings(group: Mapping[str, Any], scale: Scale, kind: Kind) -> dict[str, Any]:
    """The settings of a group that depend on the width."""
    rate = rate_factor(scale, kind)
    found: dict[str, Any] = {"lr": float(group["lr"]) * rate}
    if group.get("weight_decay"):
        inner = kind.normalised and not kind.decoupled
        found["weight_decay"] = group["weight_decay"] * (scale.inner_decay if inner else 1.0 / rate)
    if kind.normalised and isinstance(group.get("eps"), float):
        found["eps"] = group["eps"] * scale.gradient
    return found


def rate_factor(scale: Scale, kind: Kind) -> float:
    """What the learning rate of a parameter is multiplied by."""
    return scale.normalised_rate if kind.normalised else scale.proportional_rate


def _clipping(largest: float) -> Callable[..., None]:
    """Clip by the norm that the gradient of the wide network would have."""

    def hook(optimiser: Any, *_: Any) -> None:
        parts = [
            group["gradient_norm"] * parameter.grad.pow(2).sum()
            for group in optimiser.param_groups
            for parameter in group["params"]
            if parameter.grad is not None
        ]
        factor = (largest / (torch.stack(parts).sum().sqrt() + 1e-6)).clamp(max=1.0)
        for group in optimiser.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.grad.mul_(factor)

    return hook


class Follower(LRScheduler):
    """Runs the user's schedule on an optimiser of the user's own groups and hands its rates on, times the rule."""

    def __init__(self, recipe: Recipe, steps: int, resume_state: ResumeState | None, optimiser: Any) -> None:
        if not isinstance(optimiser, torch.optim.Optimizer):
            raise TypeError("this makes a scheduler")  # so that nobody takes it for a function of the step
        self.optimizer, self._steps, self._done = optimiser, steps, 0
        self._source: Any = optimiser.reference  # type: ignore[attr-defined]
        self._scheduling = recipe.scheduling(self._source)
        if resume_state is not None:
            self._done = resume_state.step
            resume_state.take_up_groups(self._source)
            self._scheduling.load_state_dict(dict(resume_state.schedule))
        self._scheduling.before(self._done)
        self._hand_on()

    def step(self, epoch: Any = None) -> None:  # noqa: ARG002
        self._done += 1
        with warnings.catch_warnings():  # torch misses the updates, which the followers make
            warnings.simplefilter("ignore", UserWarning)
            self._scheduling.after()
        if self._done < self._steps:
            self._scheduling.before(self._done)
            self._hand_on()

    def _hand_on(self) -> None:
        for group in self.optimizer.param_groups:
            source = self._source.param_groups[group["_own"]]
            group["lr"] = float(source["lr"]) * group["_rate"]
            group |= {name: source[name] for name in FOLLOWED if name in source}


def by_place(train: GroupedData, held_out: GroupedData) -> tuple[GroupedData, GroupedData]:
    """The same labels, groups and weights; the points to look at count on from those to train on."""
    first = np.arange(len(train))[:, None]
    return train.with_points(first), held_out.with_points(len(train) + np.arange(len(held_out))[:, None])


class KnownPoints:
    """All points, and what is added to the scores at each; `early` the same with statistics that have seen no batch."""

    __slots__ = ("added", "count", "early", "held_out", "train")

    def __init__(self, train: Tensor, held_out: Tensor, added: Tensor | None, early: Tensor | None = None) -> None:
        self.train, self.held_out, self.added, self.count = train, held_out, added, len(train)
        self.early = early

    def at(self, places: Tensor, early: bool) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """The points at these places, which are all of one kind, and what is added there, where the places are."""
        device, here = places.device, places[:, 0].to(self.train.device)
        first = bool(here[0] < self.count)
        # Of one row after another, this takes a fraction of the time of x[places].
        x = self.train.index_select(0, here) if first else self.held_out.index_select(0, here - self.count)
        added, at_first = (
            None if known is None else known.index_select(0, here).to(device)
            for known in (self.added, self.early if early else None)
        )
        return x.to(device), added, at_first


class NewPoints(NamedTuple):
    """For points that are not known yet: the untrained networks are asked at every point, which costs their passes.

    `settled` are the user's network and the twin, None if the twin is the network itself; `early` are the same with the
    statistics of batch normalisation that have seen no batch.
    """

    read: Read | None
    settled: tuple[nn.Module, nn.Module] | None = None
    early: tuple[nn.Module, nn.Module] | None = None

    def at(self, x: Tensor, early: bool) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """The points, and what the user's network answers beyond the twin."""
        return x, self._difference(self.settled, x), self._difference(self.early if early else None, x)

    def _difference(self, pair: tuple[nn.Module, nn.Module] | None, x: Tensor) -> Tensor | None:
        if pair is None:
            return None
        with torch.no_grad():
            wide, thin = (flat_scores(model.eval()(x), len(x), self.read) for model in pair)
            return wide - thin


class Shifted(nn.Module):
    """The scores of a network, plus what is added at each point; it takes points, or places among known ones."""

    def __init__(self, twin: ScaledTwin, points: KnownPoints | NewPoints, read: Read | None) -> None:
        super().__init__()
        self.network, self.points, self._read = twin.network, points, read
        unseen = list(fresh(twin.network))
        # In a list: it is a part of the network already.
        self._layer = [twin.network.get_submodule(unseen[0]) if unseen and not twin.whole else None]
        norms = {name: scale.norm for name, scale in twin.scales.items()}
        self.gradient_norms = {f"network.{name}": norm for name, norm in norms.items()}

    def forward(self, given: Tensor) -> Tensor:
        kept = self._unsettled()
        x, added, early = self.points.at(given, kept > 0.0)
        found = flat_scores(self.network(x), len(x), self._read)
        if added is None:
            return found
        return found + (added if early is None else kept * early + (1.0 - kept) * added)

    def _unsettled(self) -> float:
        """The part of its first statistics that batch normalisation has kept, which it forgets at its momentum."""
        layer: Any = self._layer[0]
        if self.training or layer is None or layer.num_batches_tracked is None:
            return 0.0
        return float((1.0 - (layer.momentum or 0.0)) ** int(layer.num_batches_tracked))


@dataclass(frozen=True, eq=False)
class ScaledTwin:
    """A narrow network with its weights scaled, the rule of every parameter, and what was cut."""

    network: nn.Module
    scales: dict[str, Scale]
    cut: Cut

    @property
    def whole(self) -> bool:
        """Whether nothing was cut: the twin is the network itself."""
        return not self.scales

    def scale(self, name: str) -> Scale:
        """The rule of this parameter."""
        return self.scales.get(name, Scale())

    def kind(self, recipe: Recipe) -> Kind:
        """How the optimiser of this recipe takes its steps; one that no rule is known for is refused."""
        return kind_of(recipe.make_optimiser, [p for p in self.network.parameters() if p.requires_grad], "A twin")

    def recipe(self, recipe: Recipe, steps: int, kind: Kind | None = None) -> Recipe:
        """The recipe under which the twin learns as the wide network does under this one.

        `kind` is that of its optimiser, where it is known already.
        """
        if self.whole:
            return recipe
        return scaled_recipe(recipe, self.network, self.scales, kind or self.kind(recipe), steps)


def scaled_twin(model: nn.Module, x: Tensor, share: float, seed: int, outputs: int, read: Read | None) -> ScaledTwin:
    """Cut a twin and scale its weights by the rule; `outputs` is how many scores the network gives a point."""
    return scaled(cut(model, x, share, seed, read), outputs)


def scaled(found: Cut, outputs: int) -> ScaledTwin:
    """Scale the weights of what was cut out of a network, in place."""
    scales = {
        name: scale_of(shares, _reads_out(found.model, name, shares, outputs)) for name, shares in found.shares.items()
    }
    with torch.no_grad():
        for name, parameter in found.model.named_parameters():
            if name in scales:
                parameter.mul_(scales[name].weight)
    if scales:  # convolutions of few channels are faster where the channels of a place lie together
        found.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return ScaledTwin(found.model, scales, found)


def shifted(wide: Untrained, twin: ScaledTwin, new_points: bool = False) -> Shifted:
    """The twin plus what the user's untrained network says beyond the untrained twin.

    It takes places among the points of `wide`, or with `new_points` any points.
    """
    points: KnownPoints | NewPoints
    if not new_points:
        known = (None, None) if twin.whole else (wide.beyond(twin.network), wide.early_beyond(twin.network))
        points = KnownPoints(*wide.x, *known)
    elif twin.whole:
        points = NewPoints(wide.read)
    else:
        early = (deep_copy(wide.model), deep_copy(twin.network)) if list(fresh(twin.network)) else None
        points = NewPoints(wide.read, (wide.gathered(wide.model), wide.gathered(twin.network)), early)
    return Shifted(twin, points, wide.read)


def train_twins(
    networks: Sequence[nn.Module],
    recipes: Sequence[Recipe],
    seeds: Sequence[int],
    train: GroupedData,
    held_out: GroupedData,
    watch: Watch,
    progress: bool,
) -> Trajectory:
    """The curves of all twins, with a dimension `seed` of their numbers where there are several.

    The data are those that the twins take: points, or their places.
    """
    runs: list[Trajectory] = []
    with Progress(len(networks), lambda done: f"Twin {done} of {len(networks)}") as tell:
        for number, (network, recipe, seed) in enumerate(zip(networks, recipes, seeds, strict=True)):
            run = train_model(network, train, held_out, recipe, watch=replace(watch, read=None), seed=seed)
            origin = replace(run.origin, seeds=(number,))
            runs.append(Trajectory(dict(run), run.clock, origin, run.diverged, points=run.points))
            if progress:
                tell(number + 1)
    return stack(runs) if len(runs) > 1 else runs[0]


def _reads_out(model: nn.Module, name: str, shares: Shares, outputs: int) -> bool:
    """Whether a parameter gives as many numbers as the network: its units on that side are the outputs."""
    return shares.out == 1.0 and shares.into < 1.0 and model.get_parameter(name).shape[0] == outputs
