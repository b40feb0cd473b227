"""Joined update: the steps of all twins of a stack by the formulas of their loss and optimiser."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tiltmeter.data.example_weights import example_weights
from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.twin.rule import Kind
from tiltmeter.forecast.twin.twins import FOLLOWED, ScaledTwin, rate_factor, scaled_settings
from tiltmeter.measures.point_loss import PointLoss
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.training.stacked_linear_layers import Product
from tiltmeter.training.stacked_updates import Gradients, Rate

#: Derivatives of the loss of every run by its scores (runs, points, outputs), for points at places (runs, points).
ScoreSlopes = Callable[[Tensor, Tensor], Tensor]


def score_slopes(
    loss: PointLoss, train: GroupedData, weights: Sequence[Mapping[Any, float] | None], like: Tensor
) -> ScoreSlopes | None:
    """The derivatives of the losses that `stacked_loss` gives without interventions; None where the formula is not
    known.

    `weights` are those of every run, or one for all.
    """
    known = loss.slope
    if known is None:
        return None
    y = known.targets(train.tensors(like.dtype)[1].to(like.device, like.dtype))
    heavy = _factors(train, weights, like)
    runs = torch.arange(len(weights), device=like.device)[:, None]

    def slopes(scores: Tensor, places: Tensor) -> Tensor:
        one = scores.shape[2] == 1
        goals = y.index_select(0, places.flatten()).view(places.shape)  # several times as fast as y[places]
        found = known.slope(scores[..., 0] if one else scores, goals)
        found = found.unsqueeze(2) if one else found
        if heavy is not None:
            found = found * heavy[runs, places].unsqueeze(2)
        return found.div_(scores.shape[1])

    return slopes


def _factors(train: GroupedData, weights: Sequence[Mapping[Any, float] | None], like: Tensor) -> Tensor | None:
    """The factors of all points, (runs or 1, points); None if all are 1."""
    each = [example_weights(train, one) for one in weights]
    if all(one is None for one in each):
        return None
    rows = np.stack([np.ones(len(train)) if one is None else one for one in each])
    return torch.as_tensor(rows, dtype=like.dtype, device=like.device)


#: Numbers of the longest vector of today's processors, in single precision.
LENGTH = 16


class WholeVectors:
    """Parameters and gradients as a kernel gets them: `bring` copies the last few numbers in, `take_back` out again."""

    def __init__(self, parameters: Sequence[Tensor], gradients: Sequence[Tensor]) -> None:
        self.parameters, self.gradients = list[Tensor](), list[Tensor]()
        self._copies, self._own = list[Tensor](), list[Tensor]()
        for pair in zip(parameters, gradients, strict=True):
            flat = [one.view(-1) for one in pair]
            end = len(flat[0]) // LENGTH * LENGTH
            if end:
                self._add(flat[0][:end], flat[1][:end])
            if end < len(flat[0]):
                spare = [one.new_zeros(LENGTH) for one in flat]
                self._add(*spare)
                self._copies += [one[: len(flat[0]) - end] for one in spare]
                self._own += [one[end:] for one in flat]

    def bring(self) -> None:
        """Copy the last few numbers of parameters and gradients to the vectors."""
        if self._own:
            torch._foreach_copy_(self._copies, self._own)

    def take_back(self) -> None:
        """Copy those of the parameters back."""
        if self._own:
            torch._foreach_copy_(self._own[::2], self._copies[::2])

    def _add(self, parameter: Tensor, gradient: Tensor) -> None:
        self.parameters.append(parameter)
        self.gradients.append(gradient)


#: Optimisers whose formulas are known for stacked parameters.
STACKED = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)


class Rates:
    """What the rule gives each trained parameter, from the user's optimiser and schedule run ahead."""

    def __init__(self, twin: ScaledTwin, recipe: Recipe, kind: Kind, steps: int) -> None:
        named = [(name, p) for name, p in twin.network.named_parameters() if p.requires_grad]
        clones = {name: p.detach().clone().requires_grad_() for name, p in named}
        source = recipe.make_optimiser(list(clones.values()))
        numbers = {id(p): number for number, group in enumerate(source.param_groups) for p in group["params"]}
        self.names = list(clones)
        self._kind, self._twin = type(source), twin
        self._group = {name: numbers[id(p)] for name, p in clones.items() if id(p) in numbers}
        groups = [dict(group) for group in source.param_groups]
        self.stackable = self._kind in STACKED and len(self._group) == len(clones) and not _unusual(groups)
        self._settings = {
            name: {**groups[number], **scaled_settings(groups[number], twin.scale(name), kind)}
            for name, number in self._group.items()
        }
        self._factors = {name: rate_factor(twin.scale(name), kind) for name in self._group}
        self._table = self._run_ahead(recipe, source, steps)

    def settings(self, name: str) -> Any:
        """An optimiser of one number with the settings of this parameter."""
        given = {key: value for key, value in self._settings[name].items() if key not in ("params", "initial_lr")}
        return self._kind([{**given, "params": [torch.zeros(1, requires_grad=True)]}])

    def key(self, name: str) -> tuple[Any, ...]:
        """Equal for parameters that the optimiser treats alike at every step."""
        settings = self._settings[name]
        return self._group[name], self._factors[name], settings.get("weight_decay"), settings.get("eps")

    def rate(self, name: str, step: int) -> float:
        """The learning rate of the update that makes `step` into `step + 1`."""
        return float(self._table[step, self._group[name]] * self._factors[name])

    def _run_ahead(self, recipe: Recipe, source: Any, steps: int) -> np.ndarray:
        """The rate of every group at every step; a schedule that changes more is left to the optimiser itself."""
        before = [[group.get(name) for name in FOLLOWED] for group in source.param_groups]
        scheduling = recipe.scheduling(source)
        found = np.empty((steps, len(source.param_groups)))
        with warnings.catch_warnings():  # torch misses the updates, of which there are none
            warnings.simplefilter("ignore", UserWarning)
            for step in range(steps):
                scheduling.before(step)
                found[step] = [float(group["lr"]) for group in source.param_groups]
                if recipe.schedule is not None:
                    after = [[group.get(name) for name in FOLLOWED] for group in source.param_groups]
                    self.stackable = self.stackable and after == before
                scheduling.after()
        return found


def _unusual(groups: list[dict[str, Any]]) -> bool:
    return any(group.get(option) for group in groups for option in ("maximize", "amsgrad", "differentiable"))


class JoinedUpdate:
    """Every parameter by the formula of the user's optimiser, with the settings that the rule gives it."""

    def __init__(self, twin: ScaledTwin, rates: Rates, clip: float | None) -> None:
        self._parts = formulas(rates)
        self._twin, self._rates, self._clip = twin, rates, clip
        self._spares: dict[str, Tensor] = {}

    @torch.no_grad()
    def __call__(self, parameters: Mapping[str, Tensor], gradients: Gradients, step: Rate) -> None:
        assert isinstance(step, float)
        dense = {
            name: _dense(name, one, parameters, self._spares) for name, one in gradients.items() if one is not None
        }
        self.bound(parameters, dense)(int(step))

    def bound(self, parameters: Mapping[str, Tensor], gradients: Mapping[str, Tensor]) -> Callable[[int], None]:
        """A function of the step alone, for gradients that are written to the same memory at every step."""
        parts = []
        for names, formula in self._parts:
            own = [name for name in names if name in gradients]
            if own:
                places = [_in_order(parameters[name]) for name in own]
                slopes = [_in_order(gradients[name]) for name in own]
                whole = WholeVectors(places, slopes)
                parts.append((whole, formula, own[0]))

        def update(step: int) -> None:
            if self._clip is not None:
                _clip(gradients, self._clip, self._twin)
            for whole, formula, name in parts:
                whole.bring()
                formula.take(whole.parameters, whole.gradients, self._rates.rate(name, step))
                whole.take_back()

        return update


class _Adam:
    """Adam and AdamW, with their moments."""

    def __init__(self, settings: Mapping[str, Any], decoupled: bool) -> None:
        self._formula: Any = torch._fused_adamw_ if decoupled else torch._fused_adam_
        first, second = (float(beta) for beta in settings["betas"])
        decay, eps = float(settings["weight_decay"]), float(settings["eps"])
        self._settings: dict[str, Any] = {"beta1": first, "beta2": second, "weight_decay": decay, "eps": eps}
        self._settings |= {"amsgrad": False, "maximize": False}
        self._moments: tuple[list[Tensor], list[Tensor]] | None = None
        self._count = torch.zeros(())  # of steps, one for all parameters

    def take(self, parameters: list[Tensor], gradients: list[Tensor], lr: float) -> None:
        """A step of these parameters, which are the same in every call."""
        if self._moments is None:
            means, squares = ([torch.zeros_like(one) for one in parameters] for _ in range(2))
            self._moments, self._count = (means, squares), self._count.to(parameters[0].device)
        self._count.add_(1.0)
        counts = [self._count] * len(parameters)
        self._formula(parameters, gradients, *self._moments, [], counts, lr=lr, **self._settings)


class _Descent:
    """SGD, with its velocities."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        names = ("weight_decay", "momentum", "dampening")
        self._settings: dict[str, Any] = {name: float(settings[name]) for name in names}
        self._settings["nesterov"] = bool(settings["nesterov"])
        self._speeds: list[Tensor] = []
        self._moved = False

    def take(self, parameters: list[Tensor], gradients: list[Tensor], lr: float) -> None:
        """A step of these parameters, which are the same in every call."""
        if self._settings["momentum"] and not self._speeds:
            self._speeds = [torch.zeros_like(one) for one in parameters]
        first, self._moved = not self._moved, True
        torch._fused_sgd_(
            parameters, gradients, self._speeds, lr=lr, maximize=False, is_first_step=first, **self._settings
        )


def formulas(rates: Rates) -> list[tuple[list[str], _Adam | _Descent]]:
    """Names of parameters that the optimiser treats alike, and the formula of their steps."""
    alike: dict[Any, list[str]] = {}
    for name in rates.names:
        alike.setdefault(rates.key(name), []).append(name)
    return [(names, _step_of(rates.settings(names[0]))) for names in alike.values()]


def _step_of(optimiser: torch.optim.Optimizer) -> _Adam | _Descent:
    settings = {**optimiser.defaults, **optimiser.param_groups[0]}
    if isinstance(optimiser, torch.optim.SGD):
        return _Descent(settings)
    return _Adam(settings, isinstance(optimiser, torch.optim.AdamW) or bool(settings.get("decoupled_weight_decay")))


def _dense(
    name: str, gradient: Tensor | Product, parameters: Mapping[str, Tensor], spares: dict[str, Tensor]
) -> Tensor:
    if not isinstance(gradient, Product):
        return gradient
    if name not in spares:
        spares[name] = torch.empty_like(parameters[name])
    return gradient.dense(spares[name])


def _in_order(stacked: Tensor) -> Tensor:
    """The same numbers as they lie in memory: weights are stored transposed."""
    found = stacked.transpose(1, 2) if stacked.dim() == 3 and not stacked.is_contiguous() else stacked
    assert found.is_contiguous()  # one pass over memory is only then the formula of every number
    return found


def _clip(dense: Mapping[str, Tensor], largest: float, twin: ScaledTwin) -> None:
    """Clip every run, in place, by the norm that the gradient of its wide network would have."""
    squares = [twin.scale(name).norm * one.flatten(1).pow(2).sum(1) for name, one in dense.items()]
    factors = (largest / (torch.stack(squares).sum(0).sqrt() + 1e-6)).clamp(max=1.0)
    for one in dense.values():
        one.mul_(factors.reshape(-1, *(1,) * (one.dim() - 1)))
