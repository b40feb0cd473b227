"""The loop that trains a stack: batches of all runs, one gradient, one update."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count

import numpy as np
import torch
from torch import Tensor

from tiltmeter.data.grouped import GroupedData
from tiltmeter.recipe.sampling import Sampling
from tiltmeter.training.stacked import Stacked
from tiltmeter.training.stacked_updates import Rate, Update


def stacked_batches(
    sampling: Sampling, data: GroupedData, batch: int, seeds: Sequence[int], step: int = 0
) -> Iterator[Tensor]:
    """Yield, from this step on, the batches of every seed, of shape (seeds, batch), as `train` would take them."""
    first, passed = divmod(step, sampling.batches(data, batch))
    for number in count(first):
        stretch = torch.as_tensor(np.stack([sampling.stretch(data, batch, seed, number) for seed in seeds]))
        yield from (stretch[:, start : start + batch] for start in range(passed * batch, stretch.shape[1], batch))
        passed = 0


def train_stacked(
    stacked: Stacked,
    update: Update,
    rate: Callable[[int], Rate],
    batches: Iterator[Tensor],
    points: Tensor,
    loss: Callable[[Tensor, Tensor], Tensor],
    looks: Sequence[int],
    look: Callable[[int], bool],
    start: int = 0,
    after: Callable[[int], None] | None = None,
) -> None:
    """Train all runs at once to the last of `looks`; `look(step)` returns whether to go on.

    `rate` gives the learning rate of every step. `loss` gives the loss of every run from its outputs and the places of
    its batch among the points. If `batches` has fewer rows than there are runs, neighbouring runs share a batch. A
    resumed training begins after `start` updates; `after(step)` is called after every update.
    """
    step = start
    for stop in (place for place in looks if place >= start):
        while step < stop:
            places = next(batches).to(points.device)
            if len(places) < stacked.runs:
                places = places.repeat_interleave(stacked.runs // len(places), dim=0)
            batch = points.index_select(0, places.flatten()).view(*places.shape, *points.shape[1:])
            _, gradients = stacked.differentiate(batch, lambda outputs, places=places: loss(outputs, places))  # type: ignore[misc]
            update(stacked.parameters, gradients, rate(step))
            step += 1
            if after is not None:
                after(step)
        if not look(step):
            return
