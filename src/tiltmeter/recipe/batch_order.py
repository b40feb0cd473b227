"""BatchOrder: the batches of a recipe for a loader of one's own, the same that `train` and `forecast` take."""

from __future__ import annotations

from collections.abc import Iterator

from tiltmeter.data.grouped import GroupedData
from tiltmeter.recipe import checks
from tiltmeter.recipe.recipe import Recipe, checked_recipe
from tiltmeter.recipe.sampling import GivenOrder


class BatchOrder:
    """The places of the points of every batch, for `DataLoader(dataset, batch_sampler=BatchOrder(0, train, recipe))`.

    >>> import numpy as np
    >>> data = GroupedData(np.zeros((64, 1)), np.zeros(64), ["a", "b"] * 32)
    >>> order = BatchOrder(0, data, Recipe(lr=0.1, epochs=2, batch=32))
    >>> [len(batch) for batch in order], len(order)
    ([32, 32, 32, 32], 4)
    >>> list(order) == list(BatchOrder(0, data, Recipe(lr=0.1, steps=4, batch=32)))
    True

    The dataset behind the loader should have the points of `train` in the same order. One pass through the loader is
    the whole training, whether the recipe says `steps` or `epochs`. A forecast with `replace(recipe, order=seed)` is
    then one of this run.

    Args:
        seed: Seed of the shuffling.
        train: Points to train on, with their groups.
        recipe: Training settings: optimiser, learning rate, length, batches, loss.
        start: Step at which it goes on after a restart.
    """

    def __init__(self, seed: int, train: GroupedData, recipe: Recipe, start: int = 0) -> None:
        if not isinstance(train, GroupedData):
            raise TypeError(f"`train` should be GroupedData. Found {type(train).__name__}.")
        if not checks.is_whole(seed) or seed < 0:
            raise ValueError(f"`seed` should be an integer from 0. Found seed = {seed!r}.")
        given = checked_recipe(recipe).order
        if isinstance(given, GivenOrder):
            raise ValueError("The recipe already says every batch: pass its `order` to the loader as batch_sampler.")
        if given is not None and given != seed:
            raise ValueError(f"`seed` should be the order of the recipe, {given}. Found seed = {seed}.")
        self._seed, self._train = int(seed), train
        self._batches, self._size = recipe.batches(train), recipe.batch_size(len(train))
        total = recipe.total_steps(len(train))
        if not checks.is_whole(start) or not 0 <= start <= total:
            raise ValueError(f"`start` should be a step from 0 to {total}. Found start = {start!r}.")
        self._steps = range(int(start), total)

    def __len__(self) -> int:
        """Batches in one pass."""
        return len(self._steps)

    def __iter__(self) -> Iterator[list[int]]:
        places = self._batches.in_turn(self._train, self._size, self._seed)
        for step in self._steps:
            yield [int(place) for place in places(step)]
