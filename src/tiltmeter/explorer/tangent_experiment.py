"""Tangent experiment: a saved Tangent, which the forecast page bends; it has no network to train."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tiltmeter.explorer.experiment import bent_recipe
from tiltmeter.plot.theme import group_name
from tiltmeter.record import Trajectory, log_spaced
from tiltmeter.shown_text import percent

if TYPE_CHECKING:
    from tiltmeter.recipe import Recipe

#: The page begins with this part of the learning rate at which training becomes unstable, and so many steps.
PART, STEPS = 0.05, 1000
NO_TRAINING = "A saved Tangent does not hold its network, so it cannot be trained from here."


@dataclass(frozen=True, eq=False)
class TangentExperiment:
    """The kernels, and the recipe with which the page begins: a Tangent has none of its own."""

    about: str
    kernels: Any
    recipe: Recipe

    no_training = NO_TRAINING

    @property
    def groups(self) -> list[Any]:
        return list(self.kernels.sample.groups)

    @property
    def shares(self) -> list[float]:
        """The groups' shares of the training data."""
        found: list[float] = self.kernels.shares.tolist()
        return found

    @property
    def steps(self) -> int:
        return STEPS

    @cached_property
    def refused_interventions(self) -> list[str]:
        """The interventions of the menu that need the network or its data."""
        from tiltmeter.interventions.menu import menu

        plain: dict[str, Any] = {"lr": None, "steps": STEPS, "weights": [], "shares": []}
        return [law for law in menu(STEPS) if not self._knows({**plain, "law": law})]

    def forecast(self, bend: Mapping[str, Any], full: bool) -> Trajectory:  # noqa: ARG002
        """The forecast of the bent recipe."""
        from tiltmeter.recipe.watch import Watch

        found: Trajectory = self.kernels.forecast(self.bent(bend), watch=Watch(when=log_spaced(20)))
        return found

    def bent(self, bend: Mapping[str, Any]) -> Recipe:
        return bent_recipe(self.recipe, self.groups, bend)

    def _knows(self, bend: Mapping[str, Any]) -> bool:
        try:
            self.kernels.question(self.bent(bend))
        except (ValueError, TypeError):
            return False
        return True


def tangent_experiment(path: Path, name: str) -> TangentExperiment:
    """What the folder of a Tangent holds, under the name that the page shows."""
    import torch

    from tiltmeter.forecast.kernel.saved_tangent import load_tangent
    from tiltmeter.recipe import Recipe

    torch.set_num_threads(1)
    kernels = load_tangent(path)
    settings: Any = kernels.forecast(Recipe(lr=1e-9, steps=1)).origin.settings
    sizes = zip(kernels.sample.groups, kernels.sizes.tolist(), strict=True)
    counts = ", ".join(f"{size:,} of {group_name(group)}" for group, size in sizes)
    about = (
        f"{name}: a network ({kernels.network_name}) and {int(kernels.sizes.sum()):,} training points ({counts}); "
        f"{len(kernels.sample):,} of them stand for all. The learning rate begins at {percent(PART, 0)} of the one at "
        "which training becomes unstable; every step uses all points."
    )
    return TangentExperiment(about, kernels, Recipe(lr=float(f"{PART * settings['stability_limit']:.2g}"), steps=STEPS))
