"""SymmetricNetwork: the two-layer network on four symmetric clusters that three experiments share."""

from __future__ import annotations

import math

import torch
import xarray as xr

import tiltmeter as tm
import tiltmeter_lab as lab


def clusters_of(d: int, points: int, seed: int) -> tm.GroupedData:
    """The data of one seed."""
    return lab.data.symmetric_clusters(d, points, seed=seed)


def extremes_of(data: tm.GroupedData) -> lab.measures.Extremes:
    """Return the extremes of G for the logistic loss."""
    return lab.measures.Pull(data.x, data.y / 2.0).extremes()


def network(d: int, width: int, scale: float, seed: int) -> torch.nn.Module:
    """The network of one seed, before training."""
    torch.manual_seed(seed)
    return tm.modules.two_layer(d, width, scale)


def steps_to(reached: float, net: torch.nn.Module, rate: float, lr: float) -> int:
    """Return the steps until the sizes of aligned neurons add up to `reached`; a step adds a factor (1 + lr rate)^2."""
    start = float(lab.measures.neurons_of(net).size.sum())
    return max(1, math.ceil(math.log(reached / start) / (2.0 * math.log1p(lr * rate))))


def descend(
    net: torch.nn.Module, data: tm.GroupedData, lr: float, steps: int, when: tm.record.When, seed: int
) -> tm.Trajectory:
    """Run full-batch gradient descent and read early alignment at the chosen steps."""
    return tm.train(
        net,
        data,
        data,
        tm.Recipe(lr=lr, steps=steps, batch=len(data)),
        watch=tm.Watch(when=when, measures=(lab.measures.EarlyAlignment(lr=lr),)),
        seed=seed,
    )


def at_scale(run: tm.Trajectory, curve: str, reached: float) -> xr.DataArray:
    """Return the curve at the first evaluation where `network_scale` is at least `reached`, per seed; NaN if never."""
    large = run["network_scale"] >= reached
    return run[curve].isel(time=large.argmax("time")).where(large.any("time"))
