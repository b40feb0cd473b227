"""scaled_recipe: the user's recipe with the rates, decay and clipping that a twin needs in place of its own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler

from tiltmeter.forecast.begun import Begun
from tiltmeter.forecast.one_pass import one_pass
from tiltmeter.forecast.optimiser_kind import Kind
from tiltmeter.forecast.twin.rule import Scale
from tiltmeter.recipe.recipe import Recipe

#: Settings beside the rate that a scheduler of torch may change.
FOLLOWED = ("momentum", "betas")


def scaled_recipe(
    recipe: Recipe,
    model: nn.Module,
    scales: Mapping[str, Scale],
    kind: Kind,
    steps: int,
    begun: Begun | None = None,
) -> Recipe:
    """A recipe for `train` under which the twin `model` learns as the wide network under `recipe`.

    With `begun`, rates and schedule go on from there.
    """
    names = [name for name, _ in model.named_parameters()]
    pieces = partial(_pieces, recipe, [scales.get(name, Scale()) for name in names], kind, begun)
    schedule = None if recipe.schedule is None else partial(Follower, recipe, steps, begun)
    short: dict[str, Any] = {"lr": None, "momentum": 0.0, "nesterov": False, "weight_decay": 0.0}
    return replace(recipe, optimiser=pieces, schedule=schedule, clip=None, **short)


def _pieces(recipe: Recipe, scales: list[Scale], kind: Kind, begun: Begun | None, parameters: Iterable[Any]) -> Any:
    """The user's optimiser, its groups split by the factors of their parameters."""
    given = list(parameters)
    made = recipe.make_optimiser(given)
    if begun is not None:
        begun.take_up_groups(made)
    by_id = {id(parameter): scale for parameter, scale in zip(given, scales, strict=True)}
    groups = list(made.param_groups)
    made.param_groups.clear()
    for number, group in enumerate(groups):
        parts: dict[Scale, list[Any]] = {}
        for parameter in group["params"]:
            parts.setdefault(by_id[id(parameter)], []).append(parameter)
        for scale, members in parts.items():
            own = {**group, "params": members, "_own": number, "_rate": rate_factor(scale, kind)}
            # What laws of steps need to know, see interventions.shared.uphill.
            own |= {"gradient_norm": scale.norm, "gradient_step": scale.proportional_rate}
            made.add_param_group({**own, **scaled_settings(group, scale, kind), **one_pass(made, group)})
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

    def __init__(self, recipe: Recipe, steps: int, begun: Begun | None, optimiser: Any) -> None:
        if not isinstance(optimiser, torch.optim.Optimizer):
            raise TypeError("this makes a scheduler")  # so that nobody takes it for a function of the step
        self.optimizer, self._steps, self._done = optimiser, steps, 0
        self._source: Any = optimiser.reference  # type: ignore[attr-defined]
        self._scheduling = recipe.scheduling(self._source)
        if begun is not None:
            self._done = begun.step
            begun.take_up_groups(self._source)
            self._scheduling.load_state_dict(dict(begun.schedule))
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
