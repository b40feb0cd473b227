"""LinearRun: sampled weights of the linearised network, moved by the user's optimiser on real mini-batches.

With weights theta of a sample, each standing for c others, and J their columns of the Jacobian,

    f = f0 + J (c * (theta - theta0)),        theta.grad = J' dloss/df

so that every weight sees the gradient that it would see in the whole network, and the output moves by all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn

from tiltmeter.forecast.begun import Begun
from tiltmeter.forecast.coordinates.strata import Stratum
from tiltmeter.forecast.one_pass import one_pass
from tiltmeter.recipe.recipe import Recipe

#: Derivatives of the loss of a batch by its scores (points, outputs), from these and the places of its points.
BatchSlopes = Callable[[Tensor, Tensor], Tensor]


class LinearRun:
    """One sample of weights on its way; short-lived."""

    def __init__(
        self,
        model: nn.Module,
        chosen: Sequence[Stratum],
        at_train: tuple[Tensor, Tensor],
        at_look: tuple[Tensor, Tensor],
        recipe: Recipe,
        pull: BatchSlopes,
        begun: Begun | None = None,
    ) -> None:
        self._start, self._jacobian = at_train
        self._look = at_look
        self._pull, self._clip = pull, recipe.clip
        first = [model.get_parameter(one.name).detach().flatten()[torch.as_tensor(one.places)] for one in chosen]
        self._theta = torch.cat(first).to(self._jacobian.dtype).clone()
        self._began = self._theta.clone()
        each = torch.repeat_interleave(
            torch.as_tensor([one.stands_for for one in chosen]), torch.as_tensor([len(one.places) for one in chosen])
        )
        self._stands_for = each.to(self._theta)
        self._outputs = self._jacobian.shape[1]
        whole = recipe.make_optimiser(list(model.parameters())) if begun is None else begun.optimiser
        numbers = groups_of(whole, model, chosen)
        # Neighbours in one group are one tensor to the optimiser: it treats every number by itself.
        runs = neighbours(numbers) if begun is None else [[place] for place in range(len(chosen))]
        self._sizes = [sum(len(chosen[place].places) for place in run) for run in runs]
        # Views: the optimiser moves theta itself.
        self._tensors = [nn.Parameter(part) for part in torch.split(self._theta, self._sizes)]
        self._optimiser = optimiser_of_parts(recipe, whole, model, self._tensors, [numbers[run[0]] for run in runs])
        self._scheduling = recipe.scheduling(self._optimiser)
        self._done = 0
        if begun is not None:
            self._done = begun.step
            take_up(self._optimiser, begun, model, self._tensors, chosen)
            self._scheduling.load_state_dict(dict(begun.schedule))

    @torch.no_grad()
    def step(self, rows: Tensor, places: Tensor) -> None:
        """One update on the points of these rows of the Jacobian; `places` says which points they are."""
        slopes = self._jacobian.index_select(0, rows).flatten(0, 1)
        scores = self._scores(self._start.index_select(0, rows), slopes)
        gradient = self._pull(scores, places).flatten() @ slopes
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


def groups_of(whole: Any, model: nn.Module, chosen: Sequence[Stratum]) -> list[int]:
    """The number of the parameter group into which the user's optimiser puts the parameter of each stratum."""
    found = {id(p): number for number, group in enumerate(whole.param_groups) for p in group["params"]}
    left = [one.name for one in chosen if id(model.get_parameter(one.name)) not in found]
    if left:
        raise ValueError(
            f"`optimiser` should take all parameters here. Found that it leaves out {len(left)}: set "
            "requires_grad=False for weights that do not move."
        )
    return [found[id(model.get_parameter(one.name))] for one in chosen]


def neighbours(numbers: Sequence[int]) -> list[list[int]]:
    """Places of equal neighbours together.

    >>> neighbours([0, 0, 1, 0])
    [[0, 1], [2], [3]]
    """
    return [[place for place, _ in run] for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1])]


def take_up(
    optimiser: Any, begun: Begun, model: nn.Module, tensors: Sequence[nn.Parameter], chosen: Sequence[Stratum]
) -> None:
    """Give the optimiser of the parts the rates and the memory that the optimiser of the whole has by now."""
    for tensor, one in zip(tensors, chosen, strict=True):
        parameter = model.get_parameter(one.name)
        if parameter in begun.optimiser.state:
            remembered = begun.optimiser.state[parameter].items()
            optimiser.state[tensor] = {
                key: _part(value, parameter, torch.as_tensor(one.places)) for key, value in remembered
            }
    begun.take_up_groups(optimiser)


def _part(value: Any, parameter: Tensor, places: Tensor) -> Any:
    """What an optimiser remembers of some numbers of a parameter."""
    if isinstance(value, Tensor) and value.shape == parameter.shape and value.numel() > 1:
        return value.flatten()[places].clone()
    return value.clone() if isinstance(value, Tensor) else value


def optimiser_of_parts(
    recipe: Recipe, whole: Any, model: nn.Module, tensors: Sequence[nn.Parameter], numbers: Sequence[int]
) -> Any:
    """The user's optimiser on these tensors, each in the group of this number with its settings."""
    made = recipe.make_optimiser(list(model.parameters()))
    made.param_groups.clear()
    made.state.clear()
    for number, group in enumerate(whole.param_groups):
        kept = {key: value for key, value in group.items() if key != "params"}
        own = [tensor for tensor, place in zip(tensors, numbers, strict=True) if place == number]
        made.add_param_group({**kept, "params": own, **one_pass(made, group)})
    return made
