"""replica_seeds: orders of batches for the replicas of a forecast that does not know the run's own."""

from __future__ import annotations

import numpy as np


def replica_seeds(seed: int, count: int) -> list[int]:
    """Return seeds of orders that a user's run is unlikely to have.

    >>> min(replica_seeds(0, 3)) > 1000
    True
    """
    return [int(one) for one in np.random.SeedSequence((seed, 2**31)).generate_state(count, np.uint32)]
