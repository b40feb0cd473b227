"""Experiment: a network, its data and its recipe: what the forecast page bends and trains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tiltmeter.record import Trajectory, When, log_spaced

if TYPE_CHECKING:
    from tiltmeter.data.grouped import GroupedData
    from tiltmeter.recipe import Recipe

MOST_STEPS, MOST_LR = 1_000_000, 1000.0
#: Points of the training data whose kernel is computed: the first forecast of a page takes seconds, not minutes.
SAMPLE = 1500


@dataclass(frozen=True, eq=False)
class Experiment:
    """Made of the digits example or of a TOML file. `make` builds the network with its initial weights.

    `train` trains it as a recipe says, into a run directory.
    """

    about: str
    data: GroupedData
    look: GroupedData
    recipe: Recipe
    make: Callable[[], Any]
    train: Callable[[Recipe, Path], None]
    when: When = log_spaced(20)

    @cached_property
    def kernels(self) -> Any:
        """The expensive part of a forecast, computed once."""
        import torch

        from tiltmeter.forecast.kernel.network_kernels import tangent

        torch.set_num_threads(1)
        return tangent(self.make(), self.data, self.look, sample=SAMPLE, progress=False)

    @cached_property
    def groups(self) -> list[Any]:
        return list(self.data.groups)

    @property
    def steps(self) -> int:
        return self.recipe.total_steps(len(self.data))

    def forecast(self, bend: Mapping[str, Any], full: bool) -> Trajectory | None:
        """The forecast of the bent recipe; `full` also tests how far to trust it.

        From the kernels where they know the recipe. Else by the route that `forecast` chooses, which takes longer: then
        there is none (None) unless it is the full one that is asked for.
        """
        from tiltmeter.forecast.forecast import forecast
        from tiltmeter.forecast.kernel.question import check_before_work
        from tiltmeter.recipe.watch import Watch

        recipe, watch = self.bent(bend), Watch(when=self.when)
        try:
            check_before_work(recipe, self.data)
        except ValueError:
            own = replace(recipe, order=0) if recipe.order is None else recipe
            return forecast(self.make(), self.data, self.look, own, watch=watch, progress=False) if full else None
        found: Trajectory = self.kernels.forecast(recipe, watch=watch, horizon=full)
        return found

    def bent(self, bend: Mapping[str, Any]) -> Recipe:
        """The recipe with what the sliders say: `lr`, `steps`, `weights` and `shares` by group, the name of a `law`.

        No weights and no shares leave those of the recipe as they are.
        """
        from tiltmeter.advice.menu import menu

        changed: dict[str, Any] = {"steps": _between("steps", bend["steps"], 1, MOST_STEPS), "epochs": None}
        if bend["lr"] is not None:
            _between("lr", bend["lr"], 0, MOST_LR, low_too=False)
            if self.recipe.lr is None:
                raise ValueError("`lr` of this recipe is a schedule or belongs to its optimiser, so it stays as it is.")
            changed["lr"] = bend["lr"]
        for name in ("weights", "shares"):
            if bend[name] and len(bend[name]) != len(self.groups):
                raise ValueError(f"`{name}` should be one number for each of the {len(self.groups)} groups.")
        if bend["weights"]:
            plain = np.allclose(bend["weights"], 1.0)
            changed["weights"] = None if plain else dict(zip(self.groups, bend["weights"], strict=True))
        if bend["shares"]:
            changed |= {"proportions": dict(zip(self.groups, bend["shares"], strict=True)), "sampling": None}
        if bend["law"]:
            laws = menu(int(changed["steps"]))
            if bend["law"] not in laws:
                raise ValueError(f"There is no intervention {bend['law'][:40]!r}. There are: {', '.join(laws)}.")
            changed["interventions"] = (*self.recipe.interventions, laws[bend["law"]])
        return replace(self.recipe, **changed)


def _between(name: str, value: float, low: float, high: float, low_too: bool = True) -> float:
    if not (low <= value if low_too else low < value) or not value <= high:
        raise ValueError(f"`{name}` should lie between {low:g} and {high:g}. Found {name} = {value:g}.")
    return value
