"""forecast: the group curves of a training that has not happened yet."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from tiltmeter.arguments import checked_flag, checked_path, checked_seeds
from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.methods import Rehearsal, checked_method
from tiltmeter.forecast.policy import Choice, checked_budget, choice_of, choose, twin_for
from tiltmeter.forecast.rehearsal import (
    Means,
    check_folder,
    checked_executor,
    rehearsal_promise,
    rehearse,
    save_beside_copies,
    workers_of,
)
from tiltmeter.forecast.result import finished
from tiltmeter.forecast.task import Clock, ForecastTask, forecast_task
from tiltmeter.progress import Progress
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory, stack
from tiltmeter.shown_text import quoted


def forecast(
    model: nn.Module | Callable[[], nn.Module],
    train: GroupedData,
    held_out: GroupedData | None,
    recipe: Recipe,
    budget: float | None = None,
    method: Any = None,
    *,
    watch: Watch | None = None,
    seeds: int | Sequence[int] | None = None,
    progress: bool | Callable[[Choice], Any] = True,
    executor: Any = None,
    to: str | os.PathLike[str] | None = None,
    keep: Literal["weights"] | None = None,
) -> Trajectory:
    """Forecast, before training, the curves that a `Probe` would record of this network on the held-out points.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 5))
    >>> data = GroupedData(x, np.sign(x[:, 0]), rng.choice(["a", "b"], 400, p=[0.8, 0.2]))
    >>> from tiltmeter.forecast.methods import Rehearsal
    >>> parts, recipe = data.split(0.5), Recipe(lr=0.5, steps=100)
    >>> ahead = forecast(nn.Linear(5, 1), *parts, recipe, method=Rehearsal(copies=3))
    >>> ahead["error"].sel(time=100, group="a").item() < 0.1
    True
    >>> ahead.origin.settings["promise"]["sentence"]
    'Rehearsed 3 times, 90 % band over all evaluations'

    The model is not changed, nor are random streams.

    The training is timed on a copy. As many copies are trained as the budget pays for, up to five (`Rehearsal`); else
    one narrow copy (`Twin`), else the `Preview` of a table, else the beginning of the training (`Pilot`). What will be
    done, its price and its promise are said first: on stderr, or to `progress` if it is a function of a `Choice`.
    `tm.methods.chosen` says the same without doing it. `method` takes one of `tm.methods` instead; the Origin names the
    method that was taken. With an `order` in the recipe the forecast is of that run, and one rehearsal is the run.

    Curves are means over copies. Curves `X_gap_low` and `X_gap_high` hold the promised limits of the gaps between
    groups; outside the promise they are NaN, and nobody is named there.

    The forecast is of *these* initial weights. With `seeds` (how many, or which), `model` is a function that makes a
    network; the networks are what it returns after `torch.manual_seed(seed)`, and the forecast is of any of them.

    `executor` (of concurrent.futures with processes, or a Dask client) trains copies side by side; the budget then
    counts the wall clock. With `to`, a new folder, finished copies are kept and taken up after a kill, and the forecast
    is saved; `keep="weights"` also keeps the trained weights there. Ctrl-C returns what the finished copies say.

    Args:
        model: Network to forecast, not changed; with `seeds`, a function that makes one.
        train: Points that it will be trained on.
        held_out: Points that judge it; None: a fifth of `train` is set aside.
        recipe: The training settings that `train` would get; with an `order`, the forecast is of that run.
        budget: CPU seconds to spend; None: a minute, or 0.6 of the training where that is more.
        method: One of `tm.methods`; None: the best that the budget pays for.
        watch: When to evaluate, and which measures to add to the default curves.
        seeds: How many initial weights, or which: the forecast is then of any of them. None: of this network.
        progress: Whether the plan is printed on stderr, or a function that takes it as a `Choice`.
        executor: Trains copies side by side: of concurrent.futures with processes, or a Dask client; None: one by one.
        to: New folder in which finished copies are kept, to go on after a kill; None: memory.
        keep: "weights" also keeps the trained weights in `to`.
    """
    if to is not None:
        checked_path("to", to)
    if not (keep is None or (isinstance(keep, str) and keep == "weights")):
        raise ValueError(f'`keep` should be "weights" or None. Found keep = {quoted(keep)}.')
    if keep is not None and to is None:
        raise ValueError("`keep` writes weights to the folder of the forecast: pass `to`, a new folder, too.")
    if method is not None:
        checked_method(method)
    if executor is not None:
        checked_executor(executor)
    folder = None if to is None else Path(to)
    if folder is not None:
        check_folder(folder)
    if budget is not None:
        checked_budget(budget)
    if not callable(progress):
        checked_flag("progress", progress)
    means = Means(bool(progress), executor, folder, keep is not None)
    if seeds is not None:
        ahead = _over_weights(model, train, held_out, recipe, watch, seeds, method, means)
    else:
        task = forecast_task(model, train, held_out, recipe, watch, clock=_clock(executor))
        ahead = _forecast(task, budget, method, means, progress)
    if folder is not None:
        save_beside_copies(ahead, folder)
    return ahead


def _forecast(task: ForecastTask, budget: float | None, method: Any, means: Means, progress: Any) -> Trajectory:
    """By the method that was given, or by the one that the budget buys."""
    if method is not None:
        if (refused := method.refusal(task)) is not None:
            raise ValueError(refused)
        return method.forecast(task, means)  # type: ignore[no-any-return]
    choice = choose(task, budget, workers_of(means.executor))
    _say(choice, progress)
    try:
        return noted(choice.method.forecast(task, means), choice)
    except (MemoryError, torch.OutOfMemoryError):
        twin = twin_for(task)
        if twin is None:
            raise
        other = choice_of(task, twin, "There was not enough memory for a copy of the network.")
        _say(other, progress)
        return noted(twin.forecast(task, means), other)


def noted(ahead: Trajectory, choice: Choice) -> Trajectory:
    """The same curves; the Origin says what was said before."""
    settings: dict[str, Any] = {**ahead.origin.settings, "choice": choice.to_json()}
    origin = replace(ahead.origin, settings=settings)
    return Trajectory(dict(ahead), ahead.clock, origin, ahead.diverged, points=ahead.points)


def _say(choice: Choice, progress: Any) -> None:
    if callable(progress):
        progress(choice)
    elif progress:
        print(choice, file=sys.stderr)


def _clock(executor: Any) -> Clock:
    return time.process_time if executor is None else time.perf_counter


def _over_weights(
    model: Any, train: Any, held_out: Any, recipe: Recipe, watch: Watch | None, seeds: Any, method: Any, means: Means
) -> Trajectory:
    """The mean over networks of other initial weights: their own trainings, or what a method says of each."""
    if isinstance(model, nn.Module) or not callable(model):
        raise TypeError(
            "With `seeds`, `model` should be a function that makes a new model, as lambda: nn.Linear(5, 1). "
            f"Found {type(model).__name__}."
        )
    numbers = list(checked_seeds(seeds))
    task = forecast_task(model, train, held_out, recipe, watch, seed=numbers[0])
    if method is None:
        taken = Rehearsal(len(numbers), "weights")
        made = rehearse(task, numbers, True, means)
        account = {"trainings": len(made.runs), "weights": "any initial weights", "seeds": numbers[: len(made.runs)]}
        return finished(task, taken, made.joined(), rehearsal_promise(task, len(made.runs), False), account)
    runs = []
    with Progress(len(numbers), lambda done: f"Initial weights {done} of {len(numbers)}") as tell:
        for seed in numbers:
            one = task if seed == numbers[0] else forecast_task(model, train, held_out, recipe, watch, seed=seed)
            if (refused := method.refusal(one)) is not None:
                raise ValueError(refused)
            ahead = method.forecast(one, replace(means, progress=False, to=None))
            curves = {name: curve for name, curve in ahead.items() if "pair" not in curve.dims}
            runs.append(Trajectory(curves, ahead.clock, replace(ahead.origin, seeds=(seed,)), ahead.diverged))
            if means.progress:
                tell(len(runs))
    account = {"weights": "any initial weights", "seeds": numbers}
    return finished(task, method, stack(runs) if len(runs) > 1 else runs[0], None, account)
