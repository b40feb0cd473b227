"""Rates: the learning rate of every step, from a schedule of ours or a scheduler of torch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from tiltmeter.recipe.optimisers import factory_from_json, factory_to_json, unwrapped
from tiltmeter.record.labelled import JSON
from tiltmeter.schedules import schedule_from_json, schedule_to_json, value_at


def is_function_of_step(schedule: Callable[..., Any]) -> bool:
    """Whether this is a function of the step that gives a rate; else it should make a torch scheduler.

    >>> is_function_of_step(lambda step: 0.1 / (1 + step))
    True
    """
    base, _ = unwrapped(schedule)
    if isinstance(base, type) and base.__module__.startswith("torch."):
        return False
    try:
        return isinstance(schedule(0), (Real, np.number))
    except (TypeError, AttributeError):  # a factory of schedulers fails on a number
        return False


def scheduled_rates(schedule: Callable[[float], float], steps: int) -> np.ndarray:
    """The rate of every update, the first at step 0."""
    return np.asarray([value_at(schedule, step, "lr", "step") for step in range(steps)])


def torch_rates(make: Callable[[Any], Any], lr: float, steps: int) -> np.ndarray:
    """Run a torch scheduler alone and return the rates that it gives the first parameter group."""
    import torch

    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    scheduler = torch_scheduler(make, optimiser)
    found = np.empty(steps)
    with warnings.catch_warnings():  # torch warns that the optimiser makes no updates
        warnings.simplefilter("ignore", UserWarning)
        for step in range(steps):
            found[step] = optimiser.param_groups[0]["lr"]
            if optimiser.param_groups[0]["momentum"]:
                raise ValueError(
                    "`schedule` should change the learning rate alone here. Found that it changes the momentum too "
                    "(cycle_momentum=False leaves it alone); `train` can follow it."
                )
            scheduler.step()
    return found


def torch_scheduler(make: Callable[[Any], Any], optimiser: Any) -> Any:
    """Make the scheduler of this optimiser; refuse one that needs a metric."""
    from torch.optim import lr_scheduler

    found = make(optimiser)
    if isinstance(found, lr_scheduler.ReduceLROnPlateau):
        raise TypeError("`schedule` should depend on the step alone. Found ReduceLROnPlateau, which needs a metric.")
    if not isinstance(found, lr_scheduler.LRScheduler):
        raise TypeError(
            "`schedule` should be a function of the step, as tm.schedules.Cosine(0.1, 1000), or make a torch "
            "scheduler, as partial(torch.optim.lr_scheduler.CosineAnnealingLR, T_max=1000). "
            f"Found that it makes {found!r:.80}."
        )
    return found


class Scheduling:
    """Sets the learning rates of an optimiser before every update. Its state can be saved for resuming.

    A schedule of ours sets the rate of the first parameter group; the other groups keep their ratio to it. A torch
    scheduler works as in any other loop.
    """

    def __init__(self, schedule: Callable[..., Any] | None, optimiser: Any) -> None:
        self._optimiser = optimiser  # its parameter groups are replaced when it loads a state
        ours = schedule is not None and is_function_of_step(schedule)
        self._function = schedule if ours else None
        self._scheduler = None if schedule is None or ours else torch_scheduler(schedule, optimiser)
        self._ratios = _ratios([float(group["lr"]) for group in optimiser.param_groups]) if ours else []

    @property
    def constant(self) -> bool:
        """Whether nothing is ever set."""
        return self._function is None and self._scheduler is None

    def before(self, step: int) -> None:
        """Before the update that makes `step` into `step + 1`."""
        if self._function is not None:
            rate = value_at(self._function, step, "lr", "step")
            for group, ratio in zip(self._optimiser.param_groups, self._ratios, strict=True):
                group["lr"] = rate * ratio

    def after(self) -> None:
        """After the update."""
        if self._scheduler is not None:
            self._scheduler.step()

    def state_dict(self) -> dict[str, Any]:
        return {} if self._scheduler is None else dict(self._scheduler.state_dict())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if self._scheduler is not None:
            self._scheduler.load_state_dict(state)


def _ratios(rates: list[float]) -> list[float]:
    """Return every group's rate over that of the first; all 1 if the rates start at zero."""
    if not any(rates):
        return [1.0 for _ in rates]
    if not rates[0]:
        raise ValueError(
            "With a `schedule`, other parameter groups keep their ratio to the first. Found lr = 0 in the first."
        )
    return [rate / rates[0] for rate in rates]


def recipe_schedule_to_json(schedule: Any) -> JSON:
    """Write schedules of ours and of torch by name and settings; anything else by its own name."""
    if schedule is None or is_function_of_step(schedule):
        return None if schedule is None else schedule_to_json(schedule)
    return factory_to_json(schedule, "scheduler") or {
        "schedule": "callable",
        "repr": getattr(schedule, "__qualname__", repr(schedule)),
    }


def recipe_schedule_from_json(value: Any) -> Any:
    """Rebuild the schedule, or the factory of a torch scheduler."""
    if value is None:
        return None
    if "scheduler" not in value:
        return schedule_from_json(value)
    made = factory_from_json(value, "scheduler")
    if made is None:
        raise ValueError(f"The scheduler {value['scheduler']!r} cannot be rebuilt: it is not of torch.optim.")
    return made
