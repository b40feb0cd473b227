"""DrawnBatches: batches whose groups are drawn as an intervention says, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tiltmeter.data.grouped import GroupedData


class DrawnBatches:
    """The places of the points of every batch; a `batch_sampler` for DataLoader.

    >>> from tiltmeter.interventions import GroupDRO
    >>> from tiltmeter.training.steering import Steering
    >>> data = GroupedData(np.zeros((100, 1)), np.zeros(100), ["a"] * 90 + ["b"] * 10)
    >>> batches = Steering(GroupDRO(by="draws"), data).sampler(data, batch=1000, length=1)
    >>> [float((data.codes[places] == 1).mean().round(1)) for places in batches]
    [0.5]

    The batch of a step depends on the seed, the step and the pulls at that step alone, so that a resumed training draws
    what the uninterrupted one would have drawn. Workers of a DataLoader fetch batches ahead: pulls then lag by as many.
    """

    def __init__(self, steering: Any, data: GroupedData, batch: int, length: int, seed: int) -> None:
        if not isinstance(data, GroupedData) or data.groups != steering.groups:
            raise ValueError("`data` should be GroupedData with the groups of the intervention.")
        for name, value in (("batch", batch), ("length", length)):
            if isinstance(value, bool) or value != int(value) or value < 1:
                raise ValueError(f"`{name}` should be a positive integer. Found {name} = {value!r}.")
        self._steering, self._batch, self._length, self._seed = steering, int(batch), int(length), seed
        members = [data.of_group(group) for group in data.groups]
        self._sizes = np.asarray([len(places) for places in members])
        self._members, self._starts = np.concatenate(members), np.cumsum(self._sizes) - self._sizes

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[list[int]]:
        first = int(self._steering.steps)
        for step in range(first, first + self._length):
            yield self.at(step).tolist()

    def at(self, step: int) -> np.ndarray:
        """The places of the points of this step, with the pulls as they are now."""
        shares = self._steering.pull.cpu().numpy()
        for code in np.flatnonzero((shares > 0) & (self._sizes == 0)):
            raise ValueError(f"Group {self._steering.groups[code]!r} has no points that could be drawn.")
        rng = np.random.default_rng((self._seed, step))
        codes = rng.choice(len(shares), self._batch, p=shares / shares.sum())
        within = (rng.random(self._batch) * self._sizes[codes]).astype(np.int64)
        return np.asarray(self._members[self._starts[codes] + within])
