"""Downsampled: as many training points of every group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.interventions.kinds import DataIntervention


@dataclass(frozen=True)
class Downsampled(DataIntervention):
    """As many points of every group as the smallest has, times `ratio`, drawn without replacement.

    >>> import numpy as np, tiltmeter as tm
    >>> data = tm.GroupedData(np.zeros((130, 2)), np.zeros(130), ["a"] * 100 + ["b"] * 30)
    >>> Downsampled().data(data, None).sizes
    {'a': 30, 'b': 30}

    It throws data away: what the large group loses may be more than what the small one gains.

    Args:
        ratio: Points of every group, in parts of the smallest group.
        seed: Seed of the random draws.
    """

    cannot = "use the points that it drops"

    ratio: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scout:
            raise ValueError(f"`scout` of Downsampled should be 0: it asks no model. Found scout = {self.scout}.")
        if isinstance(self.ratio, bool) or not 1.0 <= self.ratio < np.inf:
            raise ValueError(f"`ratio` should be at least 1. Found ratio = {self.ratio!r}.")

    def data(self, data: Any, snapshot: Any) -> Any:  # noqa: ARG002
        rng = np.random.default_rng(self.seed)
        most = int(self.ratio * min(data.sizes.values()))
        kept = [rng.permutation(data.of_group(group))[:most] for group in data.groups]
        return data.take(np.sort(np.concatenate(kept)))
