"""principal: the directions along which inputs vary most."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tiltmeter.data.grouped import GroupedData

#: Variances below this part of the largest are rounding: the inputs do not vary there.
VARYING = 1e-10


@dataclass(frozen=True, eq=False)
class PrincipalComponents:
    """Mean of the inputs, directions (components, inputs) of unit length, and the variance along each, descending.

    Where two variances are equal, their directions are arbitrary within the plane they span: compare the plane.
    """

    mean: np.ndarray
    directions: np.ndarray
    variances: np.ndarray

    def __len__(self) -> int:
        return len(self.variances)

    def truncate(self, x: np.ndarray, kept: int) -> np.ndarray:
        """The inputs with only their `kept` leading components; the mean remains.

        >>> x = np.random.default_rng(0).normal(size=(50, 3))
        >>> bool(np.allclose(principal_components(x).truncate(x, 3), x))
        True
        """
        leading = self.directions[:kept]
        return np.asarray(self.mean + (x - self.mean) @ leading.T @ leading)


def principal_components(x: Any, centre: bool = True) -> PrincipalComponents:
    """Components of flattened inputs, those without variance left out; variances are means over points (1/n).

    Without `centre` they are those of the second moments about zero, which is what a network without bias learns from.

    >>> x = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> principal_components(x).variances.tolist()
    [2.0, 0.5]
    """
    rows = np.asarray(x, dtype=float).reshape(len(x), -1)
    mean = rows.mean(0) if centre else np.zeros(rows.shape[1])
    variances, directions = np.linalg.eigh((rows - mean).T @ (rows - mean) / len(rows))
    variances, directions = variances[::-1], directions.T[::-1]
    # Rounding of the mean leaves a variance of this order where all inputs are the same.
    least = max(VARYING * variances[0], np.finfo(float).eps * float((rows**2).mean()))
    varying = variances > least
    if not varying.any():
        raise ValueError(f"Inputs should vary to have principal components. Found {len(rows)} points all alike.")
    return PrincipalComponents(mean, directions[varying], variances[varying])


@lru_cache(maxsize=4)
def components_of(data: GroupedData, centre: bool = True) -> PrincipalComponents:
    """The components of these data, found once: a probe asks at every look."""
    return principal_components(data.x, centre)
