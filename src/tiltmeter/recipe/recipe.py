"""Recipe: everything that decides the updates of a network, in one frozen value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np

from tiltmeter.data.group_shares import share_of
from tiltmeter.data.grouped import GroupedData
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.stored import intervention_from_json
from tiltmeter.losses import loss_from_json, loss_to_json
from tiltmeter.recipe import checks
from tiltmeter.recipe.optimisers import SHORT, MakeOptimiser, made_by, optimiser_from_json, optimiser_to_json, unwrapped
from tiltmeter.recipe.plain_sgd import PlainSGD
from tiltmeter.recipe.rates import (
    Scheduling,
    is_function_of_step,
    recipe_schedule_from_json,
    recipe_schedule_to_json,
    scheduled_rates,
    torch_rates,
)
from tiltmeter.recipe.sampling import Draws, Epochs, GivenOrder, Sampling
from tiltmeter.record.labelled import JSON, label_from_json, plain_pairs

#: All parts except the optimiser: its short form and its long form count as one part.
OTHERS = (
    *("schedule", "steps", "epochs", "batch", "sampling", "order", "weights", "proportions", "loss", "clip"),
    *("interventions", "accumulate", "autocast", "compile"),
)


#: Parts that are written as they are.
AS_GIVEN = ("steps", "epochs", "order", "clip", "accumulate", "autocast", "compile")


def different_parts(one: Recipe, other: Recipe) -> list[str]:
    """The names of the parts in which two recipes differ."""
    found = [] if _optimiser(one) == _optimiser(other) else ["optimiser"]
    return found + [name for name in OTHERS if _part(getattr(one, name)) != _part(getattr(other, name))]


def _optimiser(recipe: Recipe) -> Any:
    if recipe.optimiser is None:
        return "torch.optim.SGD", {name: getattr(recipe, name) for name in SHORT if getattr(recipe, name)}
    if _positional(recipe.optimiser):
        return recipe.optimiser
    base, settings = unwrapped(recipe.optimiser)
    if getattr(base, "__module__", None) == "torch.optim.sgd" and base.__name__ == "SGD":
        return "torch.optim.SGD", {name: one for name, one in settings.items() if one or name not in SHORT}
    return base, settings


def _part(value: Any) -> Any:
    if isinstance(value, partial) and not _positional(value):
        return unwrapped(value)
    return value


def _positional(make: Any) -> bool:
    """Whether a partial fixes arguments by position; these are not compared."""
    while isinstance(make, partial):
        if make.args:
            return True
        make = make.func
    return False


def recipe_to_json(recipe: Recipe) -> dict[str, JSON]:
    """Write every part by name; leave out parts that are not set."""
    order = recipe.order
    parts: dict[str, JSON] = {
        "optimiser": _short(recipe) if recipe.optimiser is None else optimiser_to_json(recipe.optimiser),
        "schedule": recipe_schedule_to_json(recipe.schedule),
        "steps": None if recipe.steps is None else int(recipe.steps),
        "epochs": None if recipe.epochs is None else int(recipe.epochs),
        "batch": "all" if recipe.batch is None else int(recipe.batch),
        "sampling": None if recipe.sampling is None else _sampling(recipe.sampling),
        "order": order.to_json() if isinstance(order, GivenOrder) else None if order is None else int(order),
        "weights": plain_pairs(recipe.weights),
        "proportions": plain_pairs(recipe.proportions),
        "loss": None if recipe.loss is None else loss_to_json(recipe.loss),
        "clip": None if recipe.clip is None else float(recipe.clip),
        "interventions": [one.to_json() for one in recipe.interventions] or None,
        "accumulate": None if recipe.accumulate == 1 else int(recipe.accumulate),
        "autocast": recipe.autocast,
        "compile": recipe.compile or None,
    }
    return {name: part for name, part in parts.items() if part is not None}


def recipe_from_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the recipe."""
    optimiser = dict(value["optimiser"])
    found: dict[str, Any] = {}
    # Without a rate or a schedule of ours, torch's default rate is used.
    rated = "lr" in optimiser or "schedule" in (value.get("schedule") or {})
    if optimiser.get("class") == "SGD" and set(optimiser) <= {"class", *SHORT} and rated:
        found |= {name: optimiser[name] for name in SHORT if name in optimiser}
    else:
        found["optimiser"] = optimiser_from_json(optimiser)
    found |= {name: value[name] for name in AS_GIVEN if name in value}
    if isinstance(found.get("order"), Mapping):
        raise ValueError("The order of this recipe is too long to be kept in a file: pass the array again.")
    found["batch"] = None if value["batch"] == "all" else value["batch"]
    found["schedule"] = recipe_schedule_from_json(value.get("schedule"))
    for name in ("weights", "proportions"):
        if name in value:
            found[name] = {label_from_json(key): number for key, number in value[name]}
    if "sampling" in value:
        found["sampling"] = _sampling_from(value["sampling"])
    if "loss" in value:
        found["loss"] = loss_from_json(value["loss"])
    if value.get("interventions"):
        found["interventions"] = tuple(intervention_from_json(one) for one in value["interventions"])
    return found


def _short(recipe: Recipe) -> dict[str, JSON]:
    """Write plain SGD in the short form, whichever form it was given in."""
    given = {name: getattr(recipe, name) for name in SHORT if getattr(recipe, name)}
    return {"class": "SGD", **{name: one if isinstance(one, bool) else float(one) for name, one in given.items()}}


def _sampling(sampling: Sampling) -> JSON:
    found: dict[str, JSON] = {"kind": type(sampling).__name__}
    if isinstance(sampling, Draws) and sampling.proportions is not None:
        found["proportions"] = plain_pairs(sampling.proportions)
    return found


def _sampling_from(value: Mapping[str, Any]) -> Sampling:
    if value["kind"] == "Epochs":
        return Epochs()
    if value["kind"] == "Draws":
        pairs = value.get("proportions")
        return Draws(None if pairs is None else {label_from_json(key): share for key, share in pairs})
    raise ValueError(f"The sampling {value['kind']!r} is the user's own and cannot be rebuilt from a file.")


@dataclass(frozen=True, eq=False)
class Recipe:
    """How a network is trained: optimiser, learning rates, length, batches, loss. `seed` and data are given elsewhere.

    >>> recipe = Recipe(lr=0.01, steps=1000, batch=16)  # plain SGD in short
    >>> from functools import partial
    >>> import torch
    >>> Recipe(partial(torch.optim.AdamW, lr=3e-4), epochs=10).batch
    32

    With a schedule of `tm.schedules`, leave out `lr`. At most one intervention of groups, one of steps and one of the
    model.

    The values are checked when the recipe is made. `dataclasses.replace(recipe, lr=0.02)` makes a variant of it.

    Args:
        optimiser: Makes a torch optimiser from parameters; None: SGD with `lr`.
        lr: Learning rate of torch.optim.SGD.
        momentum: Momentum of SGD.
        nesterov: Whether it is Nesterov's.
        weight_decay: Weight decay of SGD.
        schedule: Learning rate of every step: of `tm.schedules`, a function of the step, or one that makes a torch
            scheduler.
        steps: Number of updates; or give `epochs`.
        epochs: Number of passes through the data; or give `steps`.
        batch: Points in one update; None: all of them.
        sampling: `Draws()` draws every batch at random; None: every point once per epoch.
        order: Seed of the shuffling, or an array with one row of points per step; None: the seed of the run.
        weights: Factor on the loss of each group, or of each (group, label); None: all 1.
        proportions: How often each group is drawn; None: as in the data.
        loss: Loss to use, of `tm` or any callable of torch; None: the one that fits labels and outputs.
        clip: Largest norm of a gradient; None: no limit.
        interventions: Ways to change the bias, of `tm.interventions`; they act in the order given.
        accumulate: Parts in which the gradient of a batch is computed, to save memory.
        autocast: Precision of training, such as "bfloat16"; None: that of the weights. Evaluations use full precision.
        compile: Whether training runs through torch.compile, or the name of a backend.
    """

    optimiser: MakeOptimiser | None = None
    _: KW_ONLY
    lr: float | None = None
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    schedule: Callable[..., Any] | None = None
    steps: int | None = None
    epochs: int | None = None
    batch: int | None = checks.DEFAULT_BATCH
    sampling: Sampling | None = None
    order: Any = None
    weights: Mapping[Any, float] | None = None
    proportions: Mapping[Any, float] | None = None
    loss: Any = None
    clip: float | None = None
    interventions: tuple[Intervention, ...] = ()
    accumulate: int = 1
    autocast: str | None = None
    compile: bool | str = False

    def __post_init__(self) -> None:
        checks.check_recipe(self)
        for name in ("weights", "proportions"):
            given = getattr(self, name)
            object.__setattr__(self, name, None if given is None else dict(given))
        if self.order is not None and not checks.is_whole(self.order):
            object.__setattr__(self, "order", GivenOrder(getattr(self.order, "places", self.order)))
            object.__setattr__(self, "batch", self.order.size)
        object.__setattr__(self, "interventions", tuple(self.interventions))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recipe) and not different_parts(self, other)

    def __hash__(self) -> int:
        return hash((self.steps, self.epochs, self.batch, self.clip))

    @property
    def drawn(self) -> Mapping[Any, float] | None:
        """The proportions in which groups are drawn; None: as in the data."""
        return self.proportions if self.sampling is None else getattr(self.sampling, "proportions", None)

    @property
    def run_as(self) -> str:
        """How the network is run, if not plainly: only trainings of the network itself can do so. Else empty."""
        parts = self.accumulate if self.accumulate > 1 else None
        given = {"accumulate": parts, "autocast": self.autocast, "compile": self.compile}
        return ", ".join(f"{name} = {value!r}" for name, value in given.items() if value)

    def total_steps(self, points: int) -> int:
        """Return the number of updates on this many points, from `steps` or `epochs`.

        >>> Recipe(lr=0.1, epochs=2, batch=64).total_steps(100)
        4
        """
        if self.steps is not None:
            return int(self.steps)
        assert self.epochs is not None
        return int(self.epochs) * -(-points // self.batch_size(points))

    def batch_size(self, points: int) -> int:
        """Return the number of points in a batch, given the number in all."""
        if isinstance(self.order, GivenOrder):
            return self.order.size
        return points if self.batch is None else int(self.batch)

    def batches(self, data: GroupedData) -> Sampling:
        """Return how batches of these data are made, checked against the data."""
        if isinstance(self.order, GivenOrder):
            self.order.check(len(data), 1 if self.steps is None else int(self.steps))
            return self.order
        if self.proportions is not None:
            share_of(data, self.proportions)
            return Draws(self.proportions)
        sampling = Epochs() if self.sampling is None else self.sampling
        share_of(data, getattr(sampling, "proportions", None))
        return sampling

    def batch_seed(self, seed: int) -> int:
        """The seed from which batches are made in the run of this seed."""
        return seed if self.order is None or isinstance(self.order, GivenOrder) else int(self.order)

    def make_optimiser(self, parameters: Iterable[Any]) -> Any:
        """The torch optimiser of these parameters."""
        if self.optimiser is not None:
            return made_by(self.optimiser, parameters)
        import torch

        rate = self.lr if self.lr is not None else float(self.schedule(0))  # type: ignore[misc]
        given: dict[str, Any] = {"momentum": self.momentum, "weight_decay": self.weight_decay}
        return torch.optim.SGD(parameters, lr=rate, nesterov=self.nesterov, **given)

    def scheduling(self, optimiser: Any) -> Scheduling:
        """Return the object that sets the learning rates of this optimiser, step by step."""
        return Scheduling(self.schedule, optimiser)

    def learning_rates(self, steps: int) -> float | np.ndarray:
        """The learning rate of the first parameter group: one number, or one for every step."""
        if self.schedule is not None and is_function_of_step(self.schedule):
            return scheduled_rates(self.schedule, steps)
        rate = float(self.lr if self.optimiser is None else self._defaults()["lr"])  # type: ignore[arg-type]
        return rate if self.schedule is None else torch_rates(self.schedule, rate, steps)

    def plain_sgd(self, points: int) -> PlainSGD:
        """The recipe as gradient descent with momentum and weight decay, which a forecast from the kernel knows.

        >>> PlainSGD(0.1, 10) == Recipe(lr=0.1, steps=10).plain_sgd(100)
        True
        """
        checks.check_plain(self)
        defaults = {"momentum": self.momentum, "weight_decay": self.weight_decay}
        if self.optimiser is not None:
            defaults = self._defaults()
        steps = self.total_steps(points)
        rates = self.learning_rates(steps)
        return PlainSGD(rates, steps, float(defaults["momentum"]), float(defaults["weight_decay"]))

    def to_json(self) -> dict[str, JSON]:
        """Write all parts as plain JSON; what `from_json` cannot rebuild is written by its name."""
        return recipe_to_json(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Recipe:
        """Rebuild the recipe that `to_json` wrote.

        Only optimisers and schedulers of torch.optim and interventions of `tm.interventions` are rebuilt, by name.
        """
        return cls(**recipe_from_json(value))

    def _defaults(self) -> dict[str, Any]:
        import torch

        return dict(self.make_optimiser([torch.zeros(1, requires_grad=True)]).param_groups[0])


def checked_recipe(recipe: object) -> Recipe:
    """Return the recipe, or raise an error that shows what one looks like."""
    if isinstance(recipe, Recipe):
        return recipe
    raise TypeError(
        "`recipe` should be a Recipe, as tm.Recipe(lr=0.01, steps=1000, batch=16) or "
        f"tm.Recipe(partial(torch.optim.AdamW, lr=3e-4), steps=1000). Found {type(recipe).__name__}."
    )


class BatchOrder:
    """The places of the points of every batch, for `DataLoader(dataset, batch_sampler=BatchOrder(0, train, recipe))`.

    >>> import numpy as np
    >>> data = GroupedData(np.zeros((64, 1)), np.zeros(64), ["a", "b"] * 32)
    >>> order = BatchOrder(0, data, Recipe(lr=0.1, epochs=2, batch=32))
    >>> [len(batch) for batch in order], len(order)
    ([32, 32, 32, 32], 4)
    >>> list(order) == list(BatchOrder(0, data, Recipe(lr=0.1, steps=4, batch=32)))
    True

    The dataset behind the loader should have the points of `train` in the same order. One pass through the loader is
    the whole training, whether the recipe says `steps` or `epochs`. A forecast with `replace(recipe, order=seed)` is
    then one of this run.

    Args:
        seed: Seed of the shuffling.
        train: Points to train on, with their groups.
        recipe: Training settings: optimiser, learning rate, length, batches, loss.
        start: Step at which it goes on after a restart.
    """

    def __init__(self, seed: int, train: GroupedData, recipe: Recipe, start: int = 0) -> None:
        if not isinstance(train, GroupedData):
            raise TypeError(f"`train` should be GroupedData. Found {type(train).__name__}.")
        if not checks.is_whole(seed) or seed < 0:
            raise ValueError(f"`seed` should be an integer from 0. Found seed = {seed!r}.")
        given = checked_recipe(recipe).order
        if isinstance(given, GivenOrder):
            raise ValueError("The recipe already says every batch: pass its `order` to the loader as batch_sampler.")
        if given is not None and given != seed:
            raise ValueError(f"`seed` should be the order of the recipe, {given}. Found seed = {seed}.")
        self._seed, self._train = int(seed), train
        self._batches, self._size = recipe.batches(train), recipe.batch_size(len(train))
        total = recipe.total_steps(len(train))
        if not checks.is_whole(start) or not 0 <= start <= total:
            raise ValueError(f"`start` should be a step from 0 to {total}. Found start = {start!r}.")
        self._steps = range(int(start), total)

    def __len__(self) -> int:
        """Batches in one pass."""
        return len(self._steps)

    def __iter__(self) -> Iterator[list[int]]:
        places = self._batches.in_turn(self._train, self._size, self._seed)
        for step in self._steps:
            yield [int(place) for place in places(step)]
