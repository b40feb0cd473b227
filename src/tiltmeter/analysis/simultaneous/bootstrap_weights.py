"""Bootstrap weights: how often each point is drawn when a group is resampled with replacement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

#: Numbers held in memory at once. The size of a block depends on the points, not on the looks.
BLOCK = 2**22


def bootstrap_weights(sizes: Sequence[int], draws: int, rng: np.random.Generator) -> Iterator[list[np.ndarray]]:
    """Blocks of draws; in each, one array (draws, points) per group, every row summing to the group's size.

    >>> blocks = list(bootstrap_weights([3, 5], 10, np.random.default_rng(0)))
    >>> [w.sum(1).tolist() for w in blocks[0]] == [[3.0] * 10, [5.0] * 10]
    True

    The same weights are used for every look and curve. This keeps the correlation between looks at the same points,
    which makes a band over all looks narrow.
    """
    rows = int(np.clip(BLOCK // max(sum(sizes), 1), 8, 256))
    for start in range(0, draws, rows):
        count = min(rows, draws - start)
        yield [_drawn(size, count, rng) for size in sizes]


def _drawn(size: int, count: int, rng: np.random.Generator) -> np.ndarray:
    if size == 0:
        return np.zeros((count, 0), dtype=np.float32)
    places = rng.integers(0, size, (count, size), dtype=np.int32)
    places += (np.arange(count, dtype=np.int32) * size)[:, None]
    return np.bincount(places.ravel(), minlength=count * size).reshape(count, size).astype(np.float32)
