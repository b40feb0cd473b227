"""Bootstrap weights: how often each point is drawn when the points of a group are drawn anew with replacement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

#: Weights that are held at once, in numbers: the rows of one block depend on the points alone, never on the looks.
BLOCK = 2**22


def bootstrap_weights(sizes: Sequence[int], draws: int, rng: np.random.Generator) -> Iterator[list[np.ndarray]]:
    """Blocks of draws; in each, one array (draws, points) per group, every row summing to the group's size.

    >>> blocks = list(bootstrap_weights([3, 5], 10, np.random.default_rng(0)))
    >>> [w.sum(1).tolist() for w in blocks[0]] == [[3.0] * 10, [5.0] * 10]
    True

    The same weights serve every look and curve: this keeps the dependence between looks at the same points, which is
    what makes a band over all looks narrow.
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
