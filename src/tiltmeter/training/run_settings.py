"""Run settings: how long to train and on what, checked, and as JSON for the Origin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tiltmeter.data.grouped import GroupedData
from tiltmeter.record.labelled import JSON
from tiltmeter.training.sampling import Draws, Epochs, Sampling


def chosen_sampling(sampling: Sampling | None, proportions: Mapping[Any, float] | None) -> Sampling:
    """Epochs, draws in these proportions, or what the user says."""
    if sampling is None:
        return Epochs() if proportions is None else Draws(proportions)
    if proportions is not None:
        raise ValueError("`proportions` is short for `sampling=Draws(proportions)`: give one of them.")
    if not isinstance(sampling, Sampling):
        raise TypeError(f"`sampling` should be Epochs() or Draws(). Found {type(sampling).__name__}.")
    return sampling


def total_steps(steps: int | None, epochs: int | None, sampling: Sampling, data: GroupedData, batch: int) -> int:
    """How many updates, from steps or epochs."""
    for name, value in (("steps", steps), ("epochs", epochs), ("batch", batch)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ValueError(f"`{name}` should be a positive integer. Found {name} = {value!r}.")
    if (steps is None) == (epochs is None):
        raise ValueError("Say how long to train with either steps= or epochs=.")
    if steps is not None:
        return steps
    if not isinstance(sampling, Epochs):
        raise ValueError("`epochs` needs finite data; with proportions every batch is drawn anew: give steps=.")
    assert epochs is not None
    return epochs * sampling.batches(data, batch)


def plain_numbers(defaults: Mapping[str, Any]) -> dict[str, JSON]:
    """The settings of an optimiser as JSON."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in defaults.items()
        if isinstance(value, (int, float, str, tuple)) or value is None
    }
