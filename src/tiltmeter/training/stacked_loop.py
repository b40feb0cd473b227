"""The loop that trains a stack: draw batches, sum the losses of all runs, differentiate once, update."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tiltmeter.training.draws import Draws
from tiltmeter.training.stacked import Stacked
from tiltmeter.training.stacked_optimizers import Update

#: Steps whose batches are drawn together: enough to make drawing cheap, few enough to hold.
BLOCK = 256


def train_stacked(
    stacked: Stacked,
    update: Update,
    draws: Draws,
    points: Tensor,
    loss: Callable[[Tensor, Tensor], Tensor],
    looks: Sequence[int],
    look: Callable[[int, Tensor], None],
) -> None:
    """Train all runs at once to the last of `looks`; `look(step, diverged)` is called after that many updates.

    `loss` gives the loss of every run from its outputs and the places of its batch among the points. `draws`
    may serve fewer runs than there are: each of its batches then serves as many neighbouring runs as it takes.
    `diverged` holds the number of updates each run had made when its loss was first not finite, NaN where it always
    was.
    """
    diverged = torch.full((stacked.runs,), torch.nan, dtype=torch.float64)
    step = 0
    for stop in looks:
        while step < stop:
            block = draws.take(min(BLOCK, stop - step))
            block = block.repeat_interleave(stacked.runs // block.shape[1], dim=1)
            losses = torch.stack([_step(stacked, update, points, loss, places) for places in block])
            _note(losses, step, diverged)
            step += len(block)
            if bool(diverged.isfinite().all()):
                look(step, diverged)
                return
        look(step, diverged)


def _step(
    stacked: Stacked, update: Update, points: Tensor, loss: Callable[[Tensor, Tensor], Tensor], places: Tensor
) -> Tensor:
    batch = points.index_select(0, places.flatten()).view(*places.shape, *points.shape[1:])
    losses, gradients = stacked.differentiate(batch, lambda outputs: loss(outputs, places))
    update(stacked.parameters, gradients)
    return losses


def _note(losses: Tensor, step: int, diverged: Tensor) -> None:
    """Write down the first step at which the loss of a run was not finite."""
    bad = ~losses.isfinite()
    fresh = bad.any(0) & diverged.isnan()
    diverged[fresh] = (step + bad.int().argmax(0)).to(diverged.dtype)[fresh]
