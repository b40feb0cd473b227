"""Batch statistics: running statistics for batch normalisation layers that have not seen any data yet."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from tiltmeter.data.grouped import GroupedData
from tiltmeter.modules.forward import Read, scores
from tiltmeter.shown_text import warn_caller

#: About so many points go through the network together.
CHUNK = 256


def fresh(model: nn.Module) -> dict[str, _BatchNorm]:
    """Return layers that have seen no batch: their running statistics are still the initial mean 0 and variance 1.

    >>> list(fresh(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))))
    ['1']
    """
    return {
        name: layer
        for name, layer in model.named_modules()
        if isinstance(layer, _BatchNorm)
        and layer.running_mean is not None
        and layer.running_var is not None
        and not layer.num_batches_tracked  # None if the layer does not count
        and not layer.running_mean.any()
        and bool((layer.running_var == 1).all())
    }


def gather_statistics(model: nn.Module, train: GroupedData, most: int, read: Read | None) -> list[str]:
    """Give fresh layers of this model the statistics of training points; return the names of these layers.

    At most `most` points are drawn, as in training. In training, batch normalisation uses the statistics of batches,
    and its running statistics follow within some tens of steps. With mean 0 and variance 1 instead, the network would
    be another function and would learn differently.
    """
    layers = fresh(model)
    if not layers:
        return []
    places = np.random.default_rng(0).permutation(len(train))[:most]
    modes = [(module, module.training) for module in model.modules()]
    momenta = [(layer, layer.momentum) for layer in layers.values()]
    for module, _ in modes:
        module.training = False
    for layer, _ in momenta:
        layer.training, layer.momentum = True, None  # None: a plain average over all batches
    with torch.no_grad():
        for part in np.array_split(places, -(-len(places) // CHUNK)):
            next(scores(model, train.take(part).tensors()[0], read, len(part)))
    for module, mode in modes:
        module.training = mode
    for layer, momentum in momenta:
        layer.momentum = momentum
    return list(layers)


def say_gathered(names: list[str]) -> None:
    """Warn that the forecast starts from other statistics than those of the model."""
    if names:
        listed = ", ".join(map(repr, names[:3])) + (", ..." if names[3:] else "")
        warn_caller(
            f"`model` has batch normalisation that has seen no batch yet ({listed}): the forecast gives it the "
            "statistics of the training data, which it will have after some tens of steps. Earlier evaluations will "
            "differ."
        )
