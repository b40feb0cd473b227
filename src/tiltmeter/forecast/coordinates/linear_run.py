"""LinearRun: sampled weights of the linearised network, moved by the user's optimiser on real mini-batches.

With weights theta of a sample, each standing for c others, and J their columns of the Jacobian,

    f = f0 + J (c * (theta - theta0)),        theta.grad = J' dloss/df

so that every weight sees the gradient that it would see in the whole network, and the output moves by all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tiltmeter.forecast.coordinates.strata import Stratum
from tiltmeter.recipe.recipe import Recipe

#: Loss of a batch from its scores (points, outputs) and the places of its points.
BatchLoss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Begun:
    """A training on its way: the updates made, the optimiser with its memory, and the state of the schedule."""

    step: int
    optimiser: Any
    schedule: Mapping[str, Any]


class LinearRun:
    """One sample of weights on its way; short-lived."""

    def __init__(
        self,
        model: nn.Module,
        chosen: Sequence[Stratum],
        at_train: tuple[Tensor, Tensor],
        at_look: tuple[Tensor, Tensor],
        recipe: Recipe,
        loss: BatchLoss,
        begun: Begun | None = None,
    ) -> None:
        self._start, self._jacobian = at_train
        self._look = at_look
        self._loss, self._clip = loss, recipe.clip
        first = [model.get_parameter(one.name).detach().flatten()[torch.as_tensor(one.places)] for one in chosen]
        self._theta = torch.cat(first).to(self._jacobian.dtype).clone()
        self._began = self._theta.clone()
        each = torch.repeat_interleave(
            torch.as_tensor([one.stands_for for one in chosen]), torch.as_tensor([len(one.places) for one in chosen])
        )
        self._stands_for = each.to(self._theta)
        self._outputs = self._jacobian.shape[1]
        self._sizes = [len(one.places) for one in chosen]
        parts = torch.split(self._theta, self._sizes)
        self._tensors = [nn.Parameter(part) for part in parts]  # views: the optimiser moves theta itself
        named = {one.name: tensor for one, tensor in zip(chosen, self._tensors, strict=True)}
        whole = recipe.make_optimiser(list(model.parameters())) if begun is None else begun.optimiser
        self._optimiser = optimiser_of_parts(recipe, whole, model, named)
        self._scheduling = recipe.scheduling(self._optimiser)
        self._done = 0
        if begun is not None:
            self._done = begun.step
            take_up(self._optimiser, begun, model, named, chosen)
            self._scheduling.load_state_dict(dict(begun.schedule))

    def step(self, rows: Tensor, places: Tensor) -> None:
        """One update on the points of these rows of the Jacobian; `places` says which points they are."""
        slopes = self._jacobian[rows].flatten(0, 1)
        scores = self._scores(self._start[rows], slopes).requires_grad_()
        (pull,) = torch.autograd.grad(self._loss(scores, places), scores)
        gradient = pull.flatten() @ slopes
        if self._clip is not None:
            size = (self._stands_for * gradient * gradient).sum().sqrt()
            gradient = gradient * (self._clip / (size + 1e-6)).clamp(max=1.0)
        for tensor, part in zip(self._tensors, torch.split(gradient, self._sizes), strict=True):
            tensor.grad = part
        self._scheduling.before(self._done)
        self._optimiser.step()
        self._scheduling.after()
        self._done += 1

    def scores(self) -> Tensor:
        """The scores (points, outputs) at the points to look at."""
        return self._scores(self._look[0], self._look[1].flatten(0, 1))

    def _scores(self, start: Tensor, slopes: Tensor) -> Tensor:
        moved = self._stands_for * (self._theta - self._began)
        return start + (slopes @ moved).view(-1, self._outputs)


def take_up(
    optimiser: Any, begun: Begun, model: nn.Module, parts: dict[str, nn.Parameter], chosen: Sequence[Stratum]
) -> None:
    """Give the optimiser of the parts the rates and the memory that the optimiser of the whole has by now."""
    places = {one.name: torch.as_tensor(one.places) for one in chosen}
    for name, parameter in model.named_parameters():
        if name in parts and parameter in begun.optimiser.state:
            optimiser.state[parts[name]] = {
                key: _part(value, parameter, places[name]) for key, value in begun.optimiser.state[parameter].items()
            }
    for group, source in zip(optimiser.param_groups, begun.optimiser.param_groups, strict=True):
        group |= {key: value for key, value in source.items() if key != "params"}


def _part(value: Any, parameter: Tensor, places: Tensor) -> Any:
    """What an optimiser remembers of some numbers of a parameter."""
    if isinstance(value, Tensor) and value.shape == parameter.shape and value.numel() > 1:
        return value.flatten()[places].clone()
    return value.clone() if isinstance(value, Tensor) else value


def optimiser_of_parts(recipe: Recipe, whole: Any, model: nn.Module, parts: dict[str, nn.Parameter]) -> Any:
    """The user's optimiser on these parts of the parameters, in the groups into which it puts the parameters."""
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    of = {id(p): name for name, p in named.items()}
    groups = []
    for group in whole.param_groups:
        kept = {key: value for key, value in group.items() if key != "params"}
        groups.append({**kept, "params": [parts[of[id(p)]] for p in group["params"] if id(p) in of]})
    held = sum(len(group["params"]) for group in groups)
    if held < len(named):
        raise ValueError(
            f"`optimiser` should take all parameters here. Found that it leaves out {len(named) - held}: set "
            "requires_grad=False for weights that do not move."
        )
    made = recipe.make_optimiser(list(model.parameters()))
    made.param_groups.clear()
    made.state.clear()
    for group in groups:
        made.add_param_group(group)
    return made
