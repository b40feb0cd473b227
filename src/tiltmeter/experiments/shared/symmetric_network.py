"""SymmetricNetwork: the two-layer network on four symmetric clusters that three experiments share."""

from __future__ import annotations

import math

import torch
import xarray as xr

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.synthetic.clusters import symmetric_clusters
from tiltmeter.measures.named.early_alignment import EarlyAlignment
from tiltmeter.measures.shared.alignment_pull import Extremes, Pull
from tiltmeter.measures.shared.neurons import neurons_of
from tiltmeter.networks.two_layer import TwoLayer, two_layer
from tiltmeter.recipe import Recipe, Watch
from tiltmeter.record import Trajectory, When
from tiltmeter.training.loop import train


def clusters_of(d: int, points: int, seed: int) -> GroupedData:
    """The data of one seed."""
    return symmetric_clusters(d, points, seed=seed)


def extremes_of(data: GroupedData) -> Extremes:
    """Return the extremes of G for the logistic loss."""
    return Pull(data.x, data.y / 2.0).extremes()


def network(d: int, width: int, scale: float, seed: int) -> TwoLayer:
    """The network of one seed, before training."""
    torch.manual_seed(seed)
    return two_layer(d, width, scale)


def steps_to(reached: float, net: TwoLayer, rate: float, lr: float) -> int:
    """Return the steps until the sizes of aligned neurons add up to `reached`; a step adds a factor (1 + lr rate)^2."""
    start = float(neurons_of(net).size.sum())
    return max(1, math.ceil(math.log(reached / start) / (2.0 * math.log1p(lr * rate))))


def descend(net: TwoLayer, data: GroupedData, lr: float, steps: int, when: When, seed: int) -> Trajectory:
    """Run full-batch gradient descent and read early alignment at the chosen steps."""
    return train(
        net,
        data,
        data,
        Recipe(lr=lr, steps=steps, batch=len(data)),
        watch=Watch(when=when, measures=(EarlyAlignment(lr=lr),)),
        seed=seed,
    )


def at_scale(run: Trajectory, curve: str, reached: float) -> xr.DataArray:
    """Return the curve at the first look where `network_scale` is at least `reached`, per seed; NaN if never."""
    large = run["network_scale"] >= reached
    return run[curve].isel(time=large.argmax("time")).where(large.any("time"))
