"""UPGrad: the mean of the group gradients, each first projected so that it harms no group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.interventions.group_intervention import GramIntervention, Seen, gram_of

#: Added to the diagonal of the Gram matrix (scaled to trace 1).
REGULARISATION = 1e-4


@dataclass(frozen=True)
class UPGrad(GramIntervention):
    """P = mean over i of argmin w' gram w with w >= e_i: Jacobian descent, Quinton and Rey (2024).

    >>> law = UPGrad()
    >>> seen = Seen(0.0, ("+", "-"), np.array([0.5, 0.5]), np.zeros(2), gram=np.eye(2))
    >>> law.pull(np.zeros(2), seen)
    array([0.5, 0.5])
    >>> against = Seen(0.0, ("+", "-"), np.array([0.5, 0.5]), np.zeros(2), gram=np.array([[1.0, -1.0], [-1.0, 4.0]]))
    >>> law.pull(np.zeros(2), against).round(3)
    array([1.   , 0.625])

    Each group's gradient is projected onto the directions in which no group's loss rises, and the mean is taken. If
    gradients do not conflict, all groups count equally. If batches are much smaller than the number of weights,
    gradients are nearly orthogonal noise, and no conflict is seen.
    """

    cannot = "see a conflict that hides below the noise of small batches"

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        gram = gram_of(seen)
        flat = gram.reshape(-1, *gram.shape[-2:])
        return np.stack([_weights(one) for one in flat]).reshape(gram.shape[:-1])


def _weights(gram: np.ndarray) -> np.ndarray:
    """Return the weights by non-negative least squares: min |L'(u + v)| over v >= 0, with u = e_i / G."""
    from scipy.optimize import nnls

    number = len(gram)
    trace = float(np.trace(gram))
    if not trace > 0.0:
        return np.full(number, 1.0 / number)
    root = np.linalg.cholesky(gram / trace + REGULARISATION * np.eye(number)).T
    units = np.eye(number) / number
    return np.asarray(units.sum(0) + sum(nnls(root, -root @ u)[0] for u in units))
