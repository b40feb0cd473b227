"""Initialisations: forecasts of one architecture from several seeds, to show how much the initial weights matter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from tiltmeter.passes.streams import put_back, streams
from tiltmeter.progress import Progress
from tiltmeter.record import Trajectory, stack

#: Weights of the models that are forecast at a time.
MOST_WEIGHTS = 2**25


def over_initialisations(
    make_model: Callable[[], nn.Module],
    seeds: Any,
    several: Callable[[list[nn.Module]], list[Trajectory]],
    progress: bool = True,
) -> Trajectory:
    """Forecast the models of all seeds; stack along `seed` and keep the earliest horizon.

    `several` is given the next models, so many as have at most `MOST_WEIGHTS` weights together, and forecasts the first
    or more of them at a time.
    """
    if isinstance(make_model, nn.Module) or not callable(make_model):
        raise TypeError(
            "With `seeds`, `model` should be a function that makes a new model, as lambda: nn.Linear(5, 1). "
            f"Found {type(make_model).__name__}."
        )
    found: list[Trajectory] = []
    numbers = _numbers(seeds)
    with Progress(len(numbers), lambda done: f"Initialisation {done} of {len(numbers)}") as tell:
        models: list[nn.Module] = []
        while len(found) < len(numbers):
            models = models or [_model(make_model, numbers[len(found)])]
            size = sum(parameter.numel() for parameter in models[0].parameters())
            next_ones = numbers[len(found) + len(models) : len(found) + MOST_WEIGHTS // max(1, size)]
            models += [_model(make_model, seed) for seed in next_ones]
            runs = several(models)
            models = models[len(runs) :]
            for run in runs:
                origin = replace(run.origin, seeds=(numbers[len(found)],))
                found.append(Trajectory(dict(run), run.clock, origin, run.diverged))
            if progress:
                tell(len(found))
    together = stack(found)
    horizons: list[Any] = [run.origin.settings["horizon"] for run in found if "horizon" in run.origin.settings]
    settings = {**together.origin.settings, "initialisations": len(numbers)}
    if horizons:
        ends = [np.inf if horizon["step"] is None else float(horizon["step"]) for horizon in horizons]
        settings["horizon"] = horizons[int(np.argmin(ends))]
    return Trajectory(dict(together), together.clock, replace(together.origin, settings=settings), together.diverged)


def _model(make_model: Callable[[], nn.Module], seed: int) -> nn.Module:
    before = streams()
    try:
        torch.manual_seed(seed)
        model = make_model()
    finally:
        put_back(before)
    if not isinstance(model, nn.Module):
        raise TypeError(f"`model` should make a torch.nn.Module. Found that it makes {type(model).__name__}.")
    return model


def _numbers(seeds: Any) -> list[int]:
    count = isinstance(seeds, (int, np.integer)) and not isinstance(seeds, bool)
    if isinstance(seeds, str) or not (count or isinstance(seeds, (Sequence, np.ndarray))):
        raise TypeError(f"`seeds` should be how many, or a list of them. Found seeds = {seeds!r}.")
    found = list(range(seeds)) if count else [int(seed) for seed in seeds]
    if not found or len(set(found)) < len(found) or min(found) < 0:
        raise ValueError(f"`seeds` should be different integers from 0, at least one. Found seeds = {seeds}.")
    return found
