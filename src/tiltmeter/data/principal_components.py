"""Principal components: the directions along which inputs vary most."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tiltmeter.data.grouped import GroupedData

#: Variances below this share of the largest are rounding errors: the inputs do not vary there.
VARYING = 1e-10


@dataclass(frozen=True, eq=False)
class PrincipalComponents:
    """Mean of the inputs, directions (components, inputs) of unit length, and the variance along each, descending.

    If two variances are equal, their directions are arbitrary within the plane that they span: compare the planes.
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
    """Components of flattened inputs, without those of zero variance; variances are means over points (1/n).

    >>> x = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> principal_components(x).variances.tolist()
    [2.0, 0.5]

    With `centre=False` they are those of the second moments about zero, from which a network without bias learns.
    """
    rows = np.asarray(x, dtype=float).reshape(len(x), -1)
    mean = rows.mean(0) if centre else np.zeros(rows.shape[1])
    variances, directions = np.linalg.eigh((rows - mean).T @ (rows - mean) / len(rows))
    variances, directions = variances[::-1], directions.T[::-1]
    # If all inputs are the same, rounding of the mean leaves a variance of this order.
    least = max(VARYING * variances[0], np.finfo(float).eps * float((rows**2).mean()))
    varying = variances > least
    if not varying.any():
        raise ValueError(f"Inputs should vary to have principal components. Found {len(rows)} identical points.")
    return PrincipalComponents(mean, directions[varying], variances[varying])


@lru_cache(maxsize=4)
def components_of(data: GroupedData, centre: bool = True) -> PrincipalComponents:
    """The components of these data, computed once, because a probe needs them at every observation."""
    return principal_components(data.x, centre)
