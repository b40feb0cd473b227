"""Batch statistics: what batch normalisation will know soon after training begins, for layers that know nothing yet."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.warn_caller import warn_caller
from tiltmeter.passes.forward import Read, scores

#: About so many points go through the network together.
CHUNK = 256


def fresh(model: nn.Module) -> dict[str, _BatchNorm]:
    """Layers that have seen no batch: their running statistics are still the mean 0 and variance 1 of their making.

    >>> list(fresh(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))))
    ['1']
    """
    return {
        name: layer
        for name, layer in model.named_modules()
        if isinstance(layer, _BatchNorm)
        and layer.running_mean is not None
        and layer.running_var is not None
        and not layer.num_batches_tracked  # None where nobody counts
        and not layer.running_mean.any()
        and bool((layer.running_var == 1).all())
    }


def gather_statistics(model: nn.Module, train: GroupedData, most: int, read: Read | None) -> list[str]:
    """Give fresh layers of this model the statistics of at most so many points, drawn as in training; their names.

    In training, batch normalisation works with the statistics of batches, and its running ones follow within some tens
    of steps. The network with 0 and 1 in their place is another function and learns otherwise.
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
        layer.training, layer.momentum = True, None  # None: the plain average over all parts
    with torch.no_grad():
        for part in np.array_split(places, -(-len(places) // CHUNK)):
            next(scores(model, train.take(part).tensors()[0], read, len(part)))
    for module, mode in modes:
        module.training = mode
    for layer, momentum in momenta:
        layer.momentum = momentum
    return list(layers)


def say_gathered(names: list[str]) -> None:
    """Say that the forecast starts from other statistics than the model's own."""
    if names:
        listed = ", ".join(map(repr, names[:3])) + (", ..." if names[3:] else "")
        warn_caller(
            f"`model` has batch normalisation that has seen no batch yet ({listed}): the forecast gives it the "
            "statistics of the training data, as some tens of steps will. Before that, a run looks different."
        )
