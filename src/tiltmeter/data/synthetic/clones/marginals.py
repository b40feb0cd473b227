"""Independent marginals: the distribution of every coordinate in its class, and no dependence between coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.synthetic.clones.by_class import fitted_to, redrawn


@dataclass(frozen=True)
class IndependentMarginals:
    """Within a class, the values of every coordinate are permuted, separately for each coordinate.

    >>> data = GroupedData(np.arange(60.0)[:, None] * [1.0, 1.0], [0] * 60, [0] * 60)
    >>> clone = IndependentMarginals()(data)
    >>> bool((np.sort(clone.x, axis=0) == data.x).all()), bool((clone.x[:, 0] == clone.x[:, 1]).all())
    (True, False)

    Values are drawn without replacement, so that a clone of the data themselves has exactly their marginals. There is
    no grid of quantiles, which would use the extremes too often.
    """

    def __call__(self, data: GroupedData, seed: int = 0, fit: GroupedData | None = None) -> GroupedData:
        rng = np.random.default_rng(seed)

        def draw(rows: np.ndarray, count: int) -> np.ndarray:
            enough = np.tile(rows, (-(-count // len(rows)), 1))
            return np.asarray(rng.permuted(enough, axis=0)[:count])

        return redrawn(data, fitted_to(data, fit), draw)
