"""BatchLaw: changes a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.interventions.intervention import Intervention


@dataclass(frozen=True)
class BatchLaw(Intervention, ABC):
    """Another batch in place of the one that was drawn: mixed, paired or augmented points.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Reversed(BatchLaw):
    ...     def batch(self, x, y, group, rng):
    ...         return x[::-1], y[::-1], group[::-1]
    >>> Reversed().changes
    'the batches'
    """

    changes = "the batches"

    @abstractmethod
    def batch(self, x: Any, y: Any, group: Any, rng: np.random.Generator) -> tuple[Any, Any, Any]:
        """Return x, y and group codes of the batch to train on; all random numbers come from `rng`."""
