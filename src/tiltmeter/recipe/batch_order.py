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
    ([32, 32], 2)

    The dataset behind the loader should have the points of `train` in the same order. With `epochs` in the recipe one
    pass through the loader is one epoch, the next pass the next; with `steps` it is the whole training. A forecast with
    `replace(recipe, order=seed)` is then one of this run. `begin(epoch)` goes to an epoch, as after a restart.
    """

    def __init__(self, seed: int, train: GroupedData, recipe: Recipe) -> None:
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
        self._steps = total if recipe.epochs is None else total // int(recipe.epochs)
        self._once, self._pass = recipe.epochs is None, 0

    def begin(self, epoch: int) -> None:
        """Go on with this epoch, the first being 0."""
        self._pass = int(epoch)

    def __len__(self) -> int:
        """Batches in one pass."""
        return self._steps

    def __iter__(self) -> Iterator[list[int]]:
        first = 0 if self._once else self._pass * self._steps
        self._pass += 1
        places = self._batches.in_turn(self._train, self._size, self._seed)
        for step in range(first, first + self._steps):
            yield [int(place) for place in places(step)]
