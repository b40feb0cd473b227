"""ForecastTask: a network, its data and its training settings, checked once and timed on a copy."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from tiltmeter.data.grouped import GroupedData, check_labels_known
from tiltmeter.data.nested import Streamed
from tiltmeter.forecast.curves import forecast_measures
from tiltmeter.forecast.inputs import checked_classes, checked_data, checked_model, in_one_array, say_held_out
from tiltmeter.forecast.twin.cut import Cutter
from tiltmeter.forecast.twin.representative import sample_of
from tiltmeter.interventions.cost_of_interventions import cost_of
from tiltmeter.measures.answers import Answers, trial_scores
from tiltmeter.measures.output_kind import gives_probabilities
from tiltmeter.modules.forward import bare, like_weights, scores
from tiltmeter.modules.untouched import deep_copy, put_back, streams, untouched
from tiltmeter.preview.preview import Preview, preview
from tiltmeter.recipe.recipe import Recipe, checked_recipe
from tiltmeter.recipe.watch import Watch, checked_watch
from tiltmeter.threads import one_thread, small_steps
from tiltmeter.training.prepared import prepared
from tiltmeter.training.update import Update

#: Real steps that are taken on a copy, and how many of the first are not counted.
STEPS, DROPPED = 25, 5
#: Points that are evaluated together.
CHUNK = 256


class Price(NamedTuple):
    """Seconds of one step, of one evaluation, of the training loop without evaluations, and of all of it.

    `timing` are the seconds that it took to find this out.
    """

    step: float
    evaluation: float
    loop: float
    training: float
    timing: float = 0.0


def price_of(task: ForecastTask) -> Price:
    """Take a few real steps of the training on a copy, evaluate it once, and multiply.

    Interventions are counted by the gradients that they need: to time a scout would mean to train it.
    """
    started = task.clock()
    recipe = replace(task.fresh_recipe(), interventions=())
    model, total = task.fresh_model(), task.steps
    few = min(STEPS, total)
    dropped = min(DROPPED, few // 2)
    before = streams()
    with ExitStack() as stack:
        stack.callback(put_back, before)
        stack.enter_context(one_thread(small_steps(model, recipe.batch_size(len(task.train)))))
        made = prepared(model, task.train, recipe, task.watch, 0, {})
        torch.manual_seed(0)
        update = Update(model, made.data, made.optimiser, made.recipe, task.watch.read, made.laws, made.steering)
        batch = made.recipe.batches(made.data).in_turn(made.data, made.recipe.batch_size(len(made.data)), made.seed)
        begin = task.clock()
        for step in range(few):
            if step == dropped:
                begin = task.clock()
            made.scheduling.before(step)
            update(batch(step), step)
            made.scheduling.after()
        each = (task.clock() - begin) / (few - dropped)
        with untouched(model):
            answers = Answers(model, task.held_out, recipe.loss, task.watch.decide, task.watch.read, CHUNK, False)
            first = task.held_out.take(range(min(CHUNK, len(task.held_out)))).tensor_points()[0]
            for _ in scores(model, first, task.watch.read, CHUNK):  # what is done once is not counted
                pass
            begin = task.clock()
            answers.snapshot(model)
            look = task.clock() - begin
    each *= cost_of(task.recipe.interventions, len(task.train.groups), total)
    timing = task.clock() - started
    return Price(each, look, each * total, each * total + look * len(task.evaluations), timing)


#: Reads the seconds that were spent; those of this process by default.
Clock = Callable[[], float]
#: Hooks that a user may have put on a module.
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


@dataclass(frozen=True, eq=False)
class ForecastTask:
    """What is to be forecast. `model` is a copy of the user's network without wrappers and without the user's hooks.

    `make` is the function that makes networks, where one was given: other initial weights can then be tried.
    """

    model: nn.Module
    train: GroupedData
    held_out: GroupedData
    recipe: Recipe
    watch: Watch
    make: Callable[[], nn.Module] | None = None
    clock: Clock = time.process_time
    outputs: int = 1
    probabilities: bool = False

    @property
    def steps(self) -> int:
        """Updates of the training."""
        return self.recipe.total_steps(len(self.train))

    @property
    def evaluations(self) -> list[int]:
        """The steps after which the training is evaluated."""
        return sorted({*self.watch.when.steps(self.steps), self.steps})

    @property
    def order_known(self) -> bool:
        """Whether the batches are those of one training, not any."""
        return self.recipe.order is not None

    @cached_property
    def in_one_array(self) -> ForecastTask:
        """The same task with places instead of points in parts, for methods that take points of one array."""
        model, train, held_out = in_one_array(self.model, self.train, self.held_out)
        return self if train is self.train else replace(self, model=model, train=train, held_out=held_out, make=None)

    @property
    def has_batch_normalisation(self) -> bool:
        return any(isinstance(module, _BatchNorm) for module in self.model.modules())

    @cached_property
    def precise(self) -> nn.Module:
        """The same network in single precision where it has less, for methods that compare scores."""
        return deep_copy(self.model)

    @cached_property
    def x(self) -> tuple[Any, Any]:
        """The points to train on and the held-out ones, as the network takes them."""
        like = next((p for p in self.precise.parameters() if p.is_floating_point()), torch.empty(0))
        train, held_out = (like_weights(self.precise, data.tensors(like.dtype)[0]) for data in self._data)
        return train, held_out

    @cached_property
    def cut(self) -> Cutter:
        """Cuts narrow copies; the network is traced once."""
        return Cutter(self.precise, sample_of(self.x[0]), self.watch.read)

    @cached_property
    def view(self) -> Preview:
        """The preview of the table, solved once; refused where there is no table."""
        return preview(self.train, self.held_out, self.model, self.recipe)

    @cached_property
    def price(self) -> Price:
        """What the training costs, timed on a copy."""
        return price_of(self)

    def with_recipe(self, recipe: Recipe, watch: Watch | None = None) -> ForecastTask:
        """The same network and data with other training settings; what was timed is not carried over."""
        other = replace(self, recipe=checked_recipe(recipe), watch=watch or self.watch)
        other.__dict__.update({name: self.__dict__[name] for name in ("precise", "x", "cut") if name in self.__dict__})
        return other

    def fresh_model(self) -> nn.Module:
        """A copy of the network with its initial weights, in its own number type."""
        return copy.deepcopy(self.model)

    def fresh_recipe(self) -> Recipe:
        """The training settings with a loss of their own, if it may remember something."""
        loss = self.recipe.loss
        return replace(self.recipe, loss=copy.deepcopy(loss)) if isinstance(loss, nn.Module) else self.recipe

    @property
    def _data(self) -> tuple[GroupedData, GroupedData]:
        return self.train, self.held_out


def forecast_task(
    model: nn.Module | Callable[[], nn.Module],
    train: GroupedData,
    held_out: GroupedData | None,
    recipe: Recipe,
    watch: Watch | None = None,
    *,
    clock: Clock = time.process_time,
    seed: int = 0,
) -> ForecastTask:
    """Check everything that a forecast is asked for; a part of `train` is held out if `held_out` is None.

    A function that makes networks is called once, after `torch.manual_seed(seed)`.
    """
    checked_recipe(recipe)
    watch = checked_watch(Watch() if watch is None else watch)
    forecast_measures(watch)
    if held_out is None and recipe.order is not None:
        raise ValueError(
            "`order` fixes the batches of a training on all of `train`. Found held_out = None, which holds a fifth "
            "of it out: split the data yourself, or leave `order` out."
        )
    set_aside = held_out is None
    train, held_out = checked_data(train, held_out)
    if isinstance(train.x, Streamed):
        raise TypeError("`train` should hold its points in memory, to be trained on more than once. Found a stream.")
    check_labels_known(train, held_out)
    make = None if isinstance(model, nn.Module) or not callable(model) else model
    network = checked_model(model if make is None else made_model(make, seed))
    own = bare_copy(network)
    few = like_weights(own, train.take(np.arange(min(8, len(train)))).tensor_points()[0])
    with untouched(own):
        trial = trial_scores(own, few, watch.read)
        probabilities = gives_probabilities(own, few, watch.read)
    if not bool(torch.isfinite(trial).all()):
        raise ValueError("The outputs of `model` before training should be finite. Found NaN or infinite ones.")
    outputs = trial.shape[1] if trial.ndim == 2 else 1
    for data in (train, held_out):
        checked_classes(data, outputs)
    if set_aside:
        say_held_out()
    return ForecastTask(own, train, held_out, recipe, watch, make, clock, outputs, probabilities)


def bare_copy(model: nn.Module) -> nn.Module:
    """A copy without wrappers and without the user's hooks; those that torch's own parametrisations need stay."""
    if type(model).__name__ == "FullyShardedDataParallel" or "FSDP" in type(model).__name__:
        raise TypeError(f"`model` is spread over processes ({type(model).__name__}): give a function that makes it.")
    inner = bare(model)
    try:
        found = deep_copy(inner, keep_type=True)
    except (RuntimeError, TypeError, AttributeError, NotImplementedError) as error:
        first = str(error).strip().splitlines()[0]
        raise TypeError(
            f"`model` should be one that can be copied. Found: {first}. Give a function that makes it, as "
            "lambda: Network()."
        ) from None
    for module in found.modules():
        for name in HOOKS:
            hooks: dict[Any, Any] = getattr(module, name, None) or {}
            for key in [key for key, hook in hooks.items() if not _of_torch(hook)]:
                del hooks[key]
    return found


def _of_torch(hook: Any) -> bool:
    return (getattr(hook, "__module__", None) or type(hook).__module__).split(".")[0] == "torch"


def made_model(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """What the function makes after `torch.manual_seed(seed)`; the caller's random streams are put back."""
    before = streams()
    try:
        torch.manual_seed(seed)
        model = make()
    finally:
        put_back(before)
    if not isinstance(model, nn.Module):
        raise TypeError(f"`model` should make a torch.nn.Module. Found that it makes {type(model).__name__}.")
    return model


def copy_seeds(seed: int, count: int) -> list[int]:
    """Seeds of batch orders that a user's run is unlikely to have.

    >>> min(copy_seeds(0, 3)) > 1000
    True
    """
    return [int(one) for one in np.random.SeedSequence((seed, 2**31)).generate_state(count, np.uint32)]


def modules_of(model: nn.Module, *kinds: type) -> Iterator[nn.Module]:
    """The parts of a network of these kinds."""
    return (module for module in model.modules() if isinstance(module, kinds))
