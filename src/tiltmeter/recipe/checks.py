"""Checks of a recipe: made once, when the recipe is made, with one sentence for each error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from tiltmeter.interventions.checked import checked_interventions
from tiltmeter.interventions.routes import refuse_elsewhere
from tiltmeter.recipe.optimisers import SHORT, check_optimiser, unwrapped
from tiltmeter.recipe.rates import is_function_of_step
from tiltmeter.recipe.sampling import Epochs, GivenOrder, Sampling
from tiltmeter.schedules import SCHEDULES
from tiltmeter.shown_text import quoted

if TYPE_CHECKING:
    from tiltmeter.recipe.recipe import Recipe


#: Points in a batch, by default.
DEFAULT_BATCH = 32


def check_recipe(recipe: Recipe) -> None:
    """Refuse what is wrong with a recipe whatever the data are."""
    _check_rates(recipe)
    _check_length(recipe)
    _check_batches(recipe)
    for name in ("weights", "proportions"):
        given = getattr(recipe, name)
        if given is not None and not isinstance(given, Mapping):
            kind = "numbers" if name == "weights" else "shares"
            raise TypeError(f"`{name}` should map groups to {kind}. Found {type(given).__name__}.")
    if isinstance(recipe.loss, (type, str)):
        what = f"the class {recipe.loss.__name__}: call it" if isinstance(recipe.loss, type) else repr(recipe.loss)
        raise TypeError(f"`loss` should be a loss, as tm.Logistic(). Found {what}.")
    if recipe.clip is not None and not _between(recipe.clip, 0.0, np.inf, low_too=False):
        raise ValueError(f"`clip` should be a positive norm of gradients, or None. Found clip = {recipe.clip!r}.")
    checked_interventions(recipe.interventions)
    _check_run_as(recipe)


def _check_run_as(recipe: Recipe) -> None:
    if not is_whole(recipe.accumulate) or recipe.accumulate < 1:
        raise ValueError(f"`accumulate` should be a positive integer. Found accumulate = {recipe.accumulate!r}.")
    if recipe.accumulate > 1 and recipe.interventions:
        name = type(recipe.interventions[0]).__name__
        raise ValueError(f"`accumulate` computes a batch in parts, but interventions see it whole. Found {name}.")
    if recipe.accumulate > 1 and getattr(recipe.loss, "reduction", "mean") != "mean":
        raise ValueError(f"`accumulate` needs a loss that is a mean. Found reduction = {recipe.loss.reduction!r}.")
    if not (recipe.autocast is None or (isinstance(recipe.autocast, str) and recipe.autocast == "bfloat16")):
        why = (
            ": it needs a scaler of gradients, so train in a loop of your own"
            if str(recipe.autocast) == "float16"
            else ""
        )
        raise ValueError(f'`autocast` should be "bfloat16" or None. Found autocast = {quoted(recipe.autocast)}{why}.')
    if not isinstance(recipe.compile, (bool, str)):
        raise TypeError(f"`compile` should be True, False or the name of a backend. Found {recipe.compile!r}.")


def refuse_run_as(recipe: Recipe, who: str) -> None:
    """Refuse how a network is run where something else is trained in its place."""
    if recipe.run_as:
        raise ValueError(f"{who} runs the network plainly. Found {recipe.run_as}: `train` and Rehearsal run it so.")


def check_plain(recipe: Recipe) -> None:
    """Refuse what the closed form of the kernel forecast cannot treat."""
    known = "A forecast from the kernel knows SGD, with momentum, weight decay and a schedule."
    if recipe.optimiser is not None:
        import torch

        made = recipe.make_optimiser([torch.zeros(1, requires_grad=True)])
        if type(made) is not torch.optim.SGD:
            raise ValueError(f"{known} Found optimiser = {type(made).__name__}.")
        for name in ("nesterov", "dampening", "maximize"):
            if made.param_groups[0].get(name):
                raise ValueError(f"{known} Found {name} = {made.param_groups[0][name]}.")
    if recipe.nesterov:
        raise ValueError(f"{known} Found nesterov = True.")
    if recipe.clip is not None:
        raise ValueError(f"{known} Found clip = {recipe.clip}: `train` can clip gradients.")
    refuse_run_as(recipe, "A forecast from the kernel")
    refuse_elsewhere(recipe.interventions, "forecast")


def _check_rates(recipe: Recipe) -> None:
    if recipe.optimiser is None:
        if recipe.lr is None and recipe.schedule is None:
            raise ValueError(
                "A recipe needs a learning rate, as Recipe(lr=0.01, ...), or an optimiser, as "
                "Recipe(partial(torch.optim.AdamW, lr=3e-4), ...)."
            )
    else:
        check_optimiser(recipe.optimiser)
        for name in SHORT:
            if getattr(recipe, name):
                _, settings = unwrapped(recipe.optimiser)
                where = f", which has {name} = {settings[name]}" if name in settings else ""
                if not where and name in ("lr", "weight_decay"):  # every optimiser of torch has them
                    maker = getattr(unwrapped(recipe.optimiser)[0], "__name__", "AdamW")
                    where = f", as partial(torch.optim.{maker}, {name}={getattr(recipe, name)})"
                raise ValueError(f"`{name}` belongs to the short form for SGD: set it in the optimiser{where}.")
    if recipe.lr is not None and not _between(recipe.lr, 0.0, np.inf, low_too=False):
        hint = ": give a function of the step as schedule=" if callable(recipe.lr) else ""
        raise ValueError(f"`lr` should be a positive number{hint}. Found lr = {recipe.lr!r}.")
    if not _between(recipe.momentum, 0.0, 1.0):
        raise ValueError(f"`momentum` should lie between 0 and 1, 1 excluded. Found momentum = {recipe.momentum!r}.")
    if not isinstance(recipe.nesterov, bool) or (recipe.nesterov and not recipe.momentum):
        raise ValueError(f"`nesterov` needs a momentum and is True or False. Found nesterov = {recipe.nesterov!r}.")
    if not _between(recipe.weight_decay, 0.0, np.inf):
        raise ValueError(f"`weight_decay` should not be negative. Found weight_decay = {recipe.weight_decay!r}.")
    if isinstance(recipe.schedule, type) and recipe.schedule in SCHEDULES.values():
        raise TypeError(
            f"`schedule` should be a schedule, as tm.schedules.Cosine(0.1, 1000). Found the class "
            f"{recipe.schedule.__name__}: call it."
        )
    if recipe.loss is not None and not (callable(recipe.loss) or hasattr(recipe.loss, "torch")):
        raise TypeError(f"`loss` should be a loss, as tm.Logistic(). Found {quoted(recipe.loss)}.")
    if recipe.schedule is not None and not callable(recipe.schedule):
        raise TypeError(
            "`schedule` should be a function of the step, as tm.schedules.Cosine(0.1, 1000), or make a torch "
            f"scheduler. Found {type(recipe.schedule).__name__}."
        )
    if recipe.optimiser is None and recipe.schedule is not None:
        _check_own_schedule(recipe.schedule, recipe.lr)


def _check_own_schedule(schedule: Callable[..., Any], lr: float | None) -> None:
    ours = is_function_of_step(schedule)
    if lr is None and not ours:
        raise ValueError("A torch scheduler changes a learning rate: give `lr` too.")
    if lr is not None and ours:
        raise ValueError(f"`schedule` gives the learning rate of every step: leave out `lr`. Found lr = {lr}.")


def _check_length(recipe: Recipe) -> None:
    for name in ("steps", "epochs", "batch"):
        value = getattr(recipe, name)
        if value is not None and (not is_whole(value) or value < 1):
            raise ValueError(f"`{name}` should be a positive integer. Found {name} = {value!r}.")
    if (recipe.steps is None) == (recipe.epochs is None):
        raise ValueError("Say how long to train with either steps= or epochs=.")


def _check_batches(recipe: Recipe) -> None:
    sampling, order = recipe.sampling, recipe.order
    if sampling is not None and not isinstance(sampling, Sampling):
        raise TypeError(f"`sampling` should be Epochs() or Draws(). Found {type(sampling).__name__}.")
    if sampling is not None and recipe.proportions is not None:
        raise ValueError("`proportions` is short for `sampling=Draws(proportions)`: give one of them.")
    drawn = recipe.proportions is not None or (sampling is not None and not isinstance(sampling, Epochs))
    if recipe.epochs is not None and drawn:
        raise ValueError("`epochs` needs finite data; with proportions every batch is drawn anew: give steps=.")
    if order is None or is_whole(order):
        if order is not None and order < 0:
            raise ValueError(f"`order` should be a seed from 0, or an array of places. Found order = {order!r}.")
        return
    if isinstance(order, (str, bool, float)):
        raise TypeError(f"`order` should be a seed from 0, or an array of places. Found order = {order!r}.")
    given = GivenOrder(getattr(order, "places", order))
    if drawn:
        raise ValueError("An array as `order` says which points come: leave out `proportions` and `sampling`.")
    if recipe.epochs is not None:
        raise ValueError("An array as `order` has its own length: give steps= instead of epochs=.")
    if recipe.batch not in (DEFAULT_BATCH, given.size):
        raise ValueError(
            f"`batch` should be left out, or be the {given.size} places in a row of `order`. Found batch = "
            f"{recipe.batch!r}."
        )
    if recipe.steps is not None and given.steps < recipe.steps:
        raise ValueError(f"`order` should have a row for each of the {recipe.steps} steps. Found {given.steps}.")


def is_whole(value: Any) -> bool:
    """Whether this is an integer (a boolean is not)."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _between(value: object, low: float, high: float, low_too: bool = True) -> bool:
    if isinstance(value, bool) or not isinstance(value, (Real, np.number)):
        return False
    try:
        number = float(value)
    except OverflowError:
        return False
    return (low <= number if low_too else low < number) and number < high
