"""Untrained: the scores of the user's untrained network, found once for all twins and only where they are needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.batch_statistics import fresh, gather_statistics
from tiltmeter.passes.deep_copy import deep_copy
from tiltmeter.passes.forward import Read, scores
from tiltmeter.passes.untouched import untouched
from tiltmeter.recipe.recipe import Recipe

#: Points whose statistics batch normalisation gets before the difference of both networks is taken.
GATHERED = 2500
#: Points that a network answers together.
CHUNK = 256
#: The first points to train on are always known: losses are tried on them.
TRIED = 8


class Untrained:
    """A network and its points; `seen` are the places of those that are trained on (None: all).

    Batch normalisation that has seen no batch gets the statistics of the data first, in a copy.
    """

    def __init__(
        self,
        model: nn.Module,
        train: GroupedData,
        x: tuple[Tensor, Tensor],
        read: Read | None,
        seen: np.ndarray | None = None,
    ) -> None:
        self.model, self.train, self.x, self.read = model, train, x, read
        self._seen = None if seen is None else torch.as_tensor(seen)

    @cached_property
    def settled(self) -> Tensor:
        """Its scores, with the statistics of the data."""
        return self.scores(self.gathered(self.model))

    @cached_property
    def early(self) -> Tensor | None:
        """Its scores before any batch, where statistics are still to be gathered."""
        return self.scores(self.model) if list(fresh(self.model)) else None

    def gathered(self, network: nn.Module) -> nn.Module:
        """A copy of a network with the statistics of the data."""
        own = deep_copy(network)
        gather_statistics(own, self.train, GATHERED, self.read)
        return own

    def scores(self, network: nn.Module) -> Tensor:
        """The scores of a network at all points, those to train on first; not a number at points that are not seen."""
        train, look = self.x
        with untouched(network):
            parts = [train] if self._seen is None else [train[some] for some in torch.split(self._seen, CHUNK)]
            first, then = (
                torch.cat([s for part in each for _, s in scores(network, part, self.read, CHUNK)])
                for each in (parts, [look])
            )
        if self._seen is not None:
            whole = first.new_full((len(train), *first.shape[1:]), math.nan)
            whole[self._seen] = first
            first = whole
        return torch.cat([first, then])


def seen_places(train: GroupedData, recipe: Recipe, seeds: Sequence[int]) -> np.ndarray | None:
    """The places of all points that these orders show, and of the first few; None if that is nearly all of them.

    >>> data = GroupedData(np.zeros((1000, 1)), np.zeros(1000), np.zeros(1000))
    >>> len(seen_places(data, Recipe(lr=0.1, steps=3, batch=10, order=0), [0])) <= 30 + TRIED
    True
    """
    size, steps = recipe.batch_size(len(train)), recipe.total_steps(len(train))
    if steps * size >= 3 * len(train):
        return None
    sampling = recipe.batches(train)
    each = sampling.batches(train, size)
    places = [np.arange(min(TRIED, len(train)))]
    for seed in sorted({recipe.batch_seed(seed) for seed in seeds}):
        for number in range(-(-steps // each)):
            left = (steps - number * each) * size
            places.append(sampling.stretch(train, size, seed, number)[:left])
    return np.unique(np.concatenate(places))
