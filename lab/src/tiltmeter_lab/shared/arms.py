"""train_arms: train many small networks at once that differ in their start or their data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.shared.random_streams import kept_streams


def train_arms(
    models: Sequence[nn.Module],
    batch: Callable[[int], tuple[Tensor, Tensor]],
    loss: Callable[[Tensor, Tensor], Tensor],
    lr: float,
    evaluations: Sequence[int],
    read: Callable[[tm.training.Stacked], Mapping[str, xr.DataArray]],
    origin: tm.record.Origin,
) -> tm.Trajectory:
    """Train all `models` together by plain SGD up to the last of `evaluations`; `read` gives the curves at each
    evaluation.

    `batch(step)` gives the points (runs, points, ...) and labels (runs, points) of every run, so that arms can share
    their order of labels; `loss(outputs, labels)` gives one number per run.
    """
    stacked = tm.training.Stacked(models)
    update = tm.training.stacked_update(torch.optim.SGD(models[0].parameters(), lr=lr), weight_decay=0.0)
    with tm.record.Recorder(None, clock="step", origin=origin) as recorder:
        for step in range(evaluations[-1] + 1):
            if step in evaluations:
                recorder.append(step, read(stacked))
            if step < evaluations[-1]:
                x, y = batch(step)
                _, gradients = stacked.differentiate(x, partial(_swapped, loss, y))
                update(stacked.parameters, gradients, lr)
        return recorder.trajectory()


def made(make: Callable[[], nn.Module], seeds: Sequence[int]) -> list[nn.Module]:
    """Return the model of every seed; the random state of the caller is restored."""
    with kept_streams():
        found = []
        for seed in seeds:
            torch.manual_seed(seed)
            found.append(make())
        return found


def read_runs(
    stacked: tm.training.Stacked,
    runs: Mapping[int, int],
    measures: Callable[[int], Sequence[tm.measures.Measure]],
    data: Mapping[int, tm.GroupedData],
) -> dict[str, xr.DataArray]:
    """Apply the measures of each seed to its run, {seed: run}, on its data; dimension `seed` last."""
    parts = []
    for seed, run in runs.items():
        of_seed = measures(seed)

        def readings(
            snapshot: tm.measures.Snapshot, of_seed: Sequence[tm.measures.Measure] = of_seed
        ) -> dict[str, xr.DataArray]:
            return {name: value for measure in of_seed for name, value in measure(snapshot).items()}

        parts.append(lab.measure(readings, stacked.model(run), data[seed]))
    return joined(parts, "seed", list(runs))


def joined(parts: Sequence[Mapping[str, xr.DataArray]], dim: str, labels: Sequence[Any]) -> dict[str, xr.DataArray]:
    """Stack readings of the same layout along a new last dimension; much faster than xarray's concat."""
    found = {}
    for name, first in parts[0].items():
        values = np.stack([part[name].values for part in parts], axis=-1)
        coords = {**{d: first.coords[d].values for d in first.dims}, dim: list(labels)}
        found[name] = xr.DataArray(values, coords, (*first.dims, dim), attrs=first.attrs)
    return found


def _swapped(loss: Callable[[Tensor, Tensor], Tensor], y: Tensor, outputs: Tensor) -> Tensor:
    return loss(outputs, y)
