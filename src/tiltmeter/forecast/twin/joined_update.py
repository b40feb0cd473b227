"""JoinedUpdate: one step of the user's optimiser on all parameters of stacked twins, those of equal settings at once.

Twins are small, so a step of Adam takes as long as its calls. Parameters that share every setting go through the
optimiser's formula together, in one pass over their numbers (torch's fused kernels).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from tiltmeter.forecast.twin.stacked_rates import Rates
from tiltmeter.forecast.twin.twins import ScaledTwin
from tiltmeter.forecast.twin.whole_vectors import WholeVectors
from tiltmeter.training.stacked_linear_layers import Product
from tiltmeter.training.stacked_updates import Gradients, Rate


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
