"""Experiment: a network, its data and its recipe: what the forecast page bends and trains; or a saved Tangent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tiltmeter.losses import Square
from tiltmeter.plot.theme import group_name
from tiltmeter.recipe import Recipe
from tiltmeter.recipe.optimisers import unwrapped
from tiltmeter.recipe.sampling import Draws
from tiltmeter.record import Trajectory, When, log_spaced
from tiltmeter.shown_text import percent

if TYPE_CHECKING:
    from tiltmeter.data.grouped import GroupedData

MOST_STEPS, MOST_LR = 1_000_000, 1000.0


def bent_recipe(recipe: Recipe, groups: Sequence[Any], bend: Mapping[str, Any]) -> Recipe:
    """The recipe with what the sliders say: `lr`, `steps`, `weights` and `shares` by group, the name of a `law`.

    No weights and no shares leave those of the recipe as they are.
    """
    from tiltmeter.interventions.menu import menu

    changed: dict[str, Any] = {"steps": _between("steps", bend["steps"], 1, MOST_STEPS), "epochs": None}
    if bend["lr"] is not None:
        _between("lr", bend["lr"], 0, MOST_LR, low_too=False)
        if learning_rate(recipe) is None:
            raise ValueError("The learning rate of this recipe is a schedule, so it stays as it is.")
        if recipe.optimiser is None:
            changed["lr"] = bend["lr"]
        else:
            base, settings = unwrapped(recipe.optimiser)
            changed["optimiser"] = partial(base, **{**settings, "lr": bend["lr"]})
    for name in ("weights", "shares"):
        if bend[name] and len(bend[name]) != len(groups):
            raise ValueError(f"`{name}` should be one number for each of the {len(groups)} groups.")
    if bend["weights"]:
        plain = np.allclose(bend["weights"], 1.0)
        changed["weights"] = None if plain else dict(zip(groups, bend["weights"], strict=True))
    if bend["shares"]:
        changed |= {"proportions": dict(zip(groups, bend["shares"], strict=True)), "sampling": None}
    if bend["law"]:
        laws = menu(int(changed["steps"]))
        if bend["law"] not in laws:
            raise ValueError(f"There is no intervention {bend['law'][:40]!r}. There are: {', '.join(laws)}.")
        changed["interventions"] = (*recipe.interventions, laws[bend["law"]])
    return replace(recipe, **changed)


def learning_rate(recipe: Recipe) -> float | None:
    """The rate that a slider can change; None for a schedule and for an optimiser that keeps its own.

    >>> learning_rate(Recipe(lr=0.1, steps=10))
    0.1
    """
    rate = recipe.lr if recipe.optimiser is None else unwrapped(recipe.optimiser)[1].get("lr")
    return float(rate) if recipe.schedule is None and isinstance(rate, (int, float)) else None


def _between(name: str, value: float, low: float, high: float, low_too: bool = True) -> float:
    if not (low <= value if low_too else low < value) or not value <= high:
        raise ValueError(f"`{name}` should lie between {low:g} and {high:g}. Found {name} = {value:g}.")
    return value


#: Points of the training data whose kernel is computed: the first forecast of a page takes seconds, not minutes.
SAMPLE = 1500
#: CPU seconds of a forecast that the kernels do not know.
SECONDS = 3.0


@dataclass(frozen=True, eq=False)
class Experiment:
    """Made of the digits example or of a TOML file. `make` builds the network with its initial weights.

    `train` trains it as a recipe says, into a run directory.
    """

    about: str
    data: GroupedData
    held_out: GroupedData
    recipe: Recipe
    make: Callable[[], Any]
    train: Callable[[Recipe, Path], None]
    when: When = log_spaced(20)

    no_training = ""
    refused_interventions: ClassVar[list[str]] = []

    @cached_property
    def kernels(self) -> Any:
        """The expensive part of a forecast, computed once."""
        import torch

        from tiltmeter.forecast.kernel.network_kernels import tangent

        torch.set_num_threads(1)
        return tangent(self.make(), self.data, self.held_out, sample=SAMPLE, progress=False)

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
        """The forecast of the bent recipe, from the kernels where they know it.

        Else by the method that three seconds buy: then there is none (None) unless it is the full one that is asked
        for.
        """
        from tiltmeter.forecast.forecast import forecast
        from tiltmeter.forecast.kernel.question import check_before_work
        from tiltmeter.recipe.watch import Watch

        recipe, watch = self.bent(bend), Watch(when=self.when)
        try:
            check_before_work(recipe, self.data)
        except ValueError:
            own = replace(recipe, order=0) if recipe.order is None else recipe
            return (
                forecast(self.make(), self.data, self.held_out, own, SECONDS, watch=watch, progress=False)
                if full
                else None
            )
        found: Trajectory = self.kernels.forecast(recipe, watch=watch)
        return found

    def bent(self, bend: Mapping[str, Any]) -> Recipe:
        return bent_recipe(self.recipe, self.groups, bend)


WIDTH, SHARE, CONTRAST, BATCH, LR, STEPS = 256, 0.9, (0.2, 2.5), 16, 0.006, 600
ABOUT = (
    "A network of 256 hidden units will tell small digits from large ones. Nine tenths of the images are upright and "
    "faint, one tenth turned and bright."
)


@cache
def digits_experiment() -> Experiment:
    """The example of the page and of its demo runs.

    >>> digits_experiment().groups
    ['turned', 'upright']
    """
    from tiltmeter.data.public.digits import digits

    data, held_out = digits(share=SHARE, contrast=CONTRAST, labels="large")
    recipe = Recipe(lr=LR, steps=STEPS, batch=BATCH, sampling=Draws(), loss=Square())

    def train(bent: Recipe, to: Path) -> None:
        from tiltmeter.training.loop import train as train_it

        train_it(network(), data, held_out, bent, to=to, seed=0)

    return Experiment(ABOUT, data, held_out, recipe, network, train)


def network(seed: int = 0) -> Any:
    """The network with the initial weights of this seed."""
    import torch

    from tiltmeter.modules.networks import mlp

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    return mlp(64, (WIDTH,), 1)


#: The page begins with this part of the learning rate at which training becomes unstable, and so many steps.
PART, TANGENT_STEPS = 0.05, 1000
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
        return TANGENT_STEPS

    @cached_property
    def refused_interventions(self) -> list[str]:
        """The interventions of the menu that need the network or its data."""
        from tiltmeter.interventions.menu import menu

        plain: dict[str, Any] = {"lr": None, "steps": TANGENT_STEPS, "weights": [], "shares": []}
        return [law for law in menu(TANGENT_STEPS) if not self._knows({**plain, "law": law})]

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
    return TangentExperiment(
        about, kernels, Recipe(lr=float(f"{PART * settings['stability_limit']:.2g}"), steps=TANGENT_STEPS)
    )
