"""train_arms: many small networks at once that differ in start or data, looked at by any reading."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pandas as pd
import torch
import xarray as xr
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.direct import measure
from tiltmeter.measures.snapshot import Measure
from tiltmeter.passes.streams import put_back, streams
from tiltmeter.record import Origin, Recorder, Trajectory
from tiltmeter.training.stacked import Stacked
from tiltmeter.training.stacked_optimizers import stacked_update


def train_arms(
    models: Sequence[nn.Module],
    batch: Callable[[int], tuple[Tensor, Tensor]],
    loss: Callable[[Tensor, Tensor], Tensor],
    lr: float,
    looks: Sequence[int],
    read: Callable[[Stacked], Mapping[str, xr.DataArray]],
    origin: Origin,
) -> Trajectory:
    """Plain descent of all `models` together; `read` gives the curves at the steps `looks`, the last of which ends it.

    `batch(step)` gives the points (runs, points, ...) and labels (runs, points) of every run, so that arms can share
    their order of labels; `loss(outputs, labels)` gives one number per run.
    """
    stacked = Stacked(models)
    update = stacked_update(torch.optim.SGD(models[0].parameters(), lr=lr), lr, 0.0)
    with Recorder(None, clock="step", origin=origin) as recorder:
        for step in range(looks[-1] + 1):
            if step in looks:
                recorder.append(step, read(stacked))
            if step < looks[-1]:
                x, y = batch(step)
                _, gradients = stacked.differentiate(x, partial(_swapped, loss, y))
                update(stacked.parameters, gradients)
        return recorder.trajectory()


def made(make: Callable[[], nn.Module], seeds: Sequence[int]) -> list[nn.Module]:
    """The model of every seed; the random streams of the caller stay as they are."""
    before = streams()
    try:
        found = []
        for seed in seeds:
            torch.manual_seed(seed)
            found.append(make())
        return found
    finally:
        put_back(before)


def read_runs(
    stacked: Stacked, runs: Mapping[int, int], measures: Sequence[Measure], data: Mapping[int, GroupedData]
) -> dict[str, xr.DataArray]:
    """What the measures read off some runs, {seed: which}, each on the data of its seed; dimension `seed` last."""
    found: dict[str, list[xr.DataArray]] = {}
    for seed, run in runs.items():
        model = stacked.model(run)
        for one in measures:
            for name, reading in measure(one, model, data[seed]).items():
                found.setdefault(name, []).append(reading)
    index = pd.Index(list(runs), name="seed")
    return {
        name: xr.concat(parts, index, combine_attrs="override").transpose(..., "seed") for name, parts in found.items()
    }


def _swapped(loss: Callable[[Tensor, Tensor], Tensor], y: Tensor, outputs: Tensor) -> Tensor:
    return loss(outputs, y)
