"""Rates: the settings of every parameter of stacked twins, and its learning rate at every step."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

from tiltmeter.forecast.optimiser_kind import Kind
from tiltmeter.forecast.twin.scaled_recipe import FOLLOWED, rate_factor, scaled_settings
from tiltmeter.forecast.twin.twins import ScaledTwin
from tiltmeter.recipe.recipe import Recipe

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
