"""Experiment: a network, its data and its recipe: what the forecast page bends and trains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tiltmeter.explorer.bent_recipe import bent_recipe
from tiltmeter.record import Trajectory, When, log_spaced

if TYPE_CHECKING:
    from tiltmeter.data.grouped import GroupedData
    from tiltmeter.recipe import Recipe

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

    no_training = ""
    refused_laws: ClassVar[list[str]] = []

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
    def shares(self) -> list[float]:
        """The groups' shares of the training data."""
        return [float((self.data.codes == code).mean()) for code in range(len(self.groups))]

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
        return bent_recipe(self.recipe, self.groups, bend)
