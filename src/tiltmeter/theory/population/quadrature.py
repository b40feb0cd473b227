"""Quadrature: fixed nodes for Gaussian averages that have no closed form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tiltmeter.record.labelled import JSON


@dataclass(frozen=True)
class Sobol:
    """A scrambled Sobol sequence mapped to the normal distribution: the same nodes for every average.

    >>> Sobol(count=1024).nodes(2).shape
    (1024, 2)

    With common nodes, averages are smooth functions of the overlaps and can be used in an ODE. `scramble` selects one
    of many equally good sets of nodes: the spread over several shows the error of the quadrature (Owen 1995).

    Args:
        count: Number of nodes, a power of 2.
        scramble: Which of many equally good sets of nodes.
    """

    count: int = 4096
    scramble: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or self.count < 2 or self.count & (self.count - 1):
            raise ValueError(f"`count` should be a power of two. Found count = {self.count}.")

    def nodes(self, dimensions: int) -> np.ndarray:
        """Standard normal nodes of shape (count, dimensions)."""
        return _nodes(self.count, self.scramble, dimensions)

    def uniform(self, dimensions: int) -> np.ndarray:
        """The same nodes in the unit cube, strictly inside."""
        return _uniform(self.count, self.scramble, dimensions)

    def to_json(self) -> dict[str, JSON]:
        return {"quadrature": "sobol", "count": self.count, "scramble": self.scramble}


@lru_cache(maxsize=32)
def _uniform(count: int, scramble: int, dimensions: int) -> np.ndarray:
    from scipy.stats import qmc

    sequence = qmc.Sobol(dimensions, scramble=True, rng=np.random.default_rng(scramble))
    uniform = np.clip(sequence.random_base2(count.bit_length() - 1), 1e-12, 1.0 - 1e-12)
    uniform.flags.writeable = False
    return np.asarray(uniform)


@lru_cache(maxsize=32)
def _nodes(count: int, scramble: int, dimensions: int) -> np.ndarray:
    from scipy.special import ndtri

    nodes = ndtri(_uniform(count, scramble, dimensions))
    nodes.flags.writeable = False
    return np.asarray(nodes)
