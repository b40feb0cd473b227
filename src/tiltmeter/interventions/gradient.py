"""Group interventions that see the gradients of the groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.interventions.group_intervention import GramIntervention, Seen, gram_of
from tiltmeter.interventions.shared.shares import checked_per_group


@dataclass(frozen=True)
class GroupClipping(GramIntervention):
    """P = p min(1, limit / `|gradient of the group|`): no group's gradient is longer than `limit`.

    >>> law = GroupClipping(limit=1.0)
    >>> seen = Seen(0.0, ("+", "-"), np.array([0.5, 0.5]), np.zeros(2), gram=np.diag([4.0, 0.25]))
    >>> law.pull(np.zeros(2), seen)
    array([0.25, 0.5 ])

    Clipping the whole gradient shortens it where one group is badly off, and so slows that group down. Clipping every
    group on its own keeps the others at their pace.

    A group that is clipped learns more slowly than without: this protects others from it.

    Args:
        limit: Largest length of the gradient of a group.
    """

    title = "the gradient of every group is limited in length before they are added"
    cannot = "speed a group up: it only holds back those with long gradients"

    limit: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_per_group(self.limit, "limit", 0.0, strict=True)

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        lengths = np.sqrt(np.maximum(np.diagonal(gram_of(seen), axis1=-2, axis2=-1), np.finfo(float).tiny))
        return np.asarray(seen.shares * np.minimum(1.0, self.limit / lengths))


@dataclass(frozen=True)
class JacobianDescent(GramIntervention):
    """P = weighting(gram), with a weighting of the package torchjd by name: "MGDA", "PCGrad", "IMTLG", "AlignedMTL".

    >>> JacobianDescent("MGDA").weighting
    'MGDA'

    It needs torchjd: `pip install "tiltmeter[jacobian]"`. Some of its weightings need packages of their own.

    `UPGrad` needs no package. Weightings that draw random numbers, such as PCGrad, follow torch's stream.

    Args:
        weighting: Name of a weighting of torchjd.
    """

    title = "any weighting of group gradients that torchjd knows"
    cannot = "see a conflict that hides below the noise of small batches"

    weighting: str = "MGDA"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.weighting, str) or not self.weighting.isidentifier():
            raise ValueError(f"`weighting` should be a name of torchjd such as 'MGDA'. Found {self.weighting!r}.")

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        import torch

        chosen = _weighting(self.weighting)
        gram = gram_of(seen)
        flat = gram.reshape(-1, *gram.shape[-2:])
        found = [chosen(torch.as_tensor(one, dtype=torch.float64)).cpu().numpy() for one in flat]
        return np.stack(found).reshape(gram.shape[:-1])


def _weighting(name: str) -> Any:
    try:
        from torchjd import aggregation
    except ImportError:
        raise ImportError('JacobianDescent needs torchjd: pip install "tiltmeter[jacobian]".') from None
    kind = getattr(aggregation, f"{name}Weighting", None)
    if kind is None:
        known = sorted(one.removesuffix("Weighting") for one in dir(aggregation) if one.endswith("Weighting"))
        raise ValueError(f"torchjd has no weighting {name!r}. There are: {', '.join(filter(None, known))}.")
    return kind()


@dataclass(frozen=True)
class NormalisedGradient(GramIntervention):
    """P = scale over the length of the group's gradient in this batch, Francazi et al. (2023).

    >>> law = NormalisedGradient()
    >>> seen = Seen(0.0, ("+", "-"), np.array([0.5, 0.5]), np.zeros(2), gram=np.diag([4.0, 0.25]))
    >>> law.pull(np.zeros(2), seen)
    array([0.5, 2. ])

    With full batches the losses of two groups fall together. With small batches it does not balance them: the length of
    a gradient is mostly noise, so a group with n points in the batch counts like sqrt(n / loss), and the group that is
    already good counts more. Balance the batches as well, and let the learning rate decay, because the steps do not
    shrink by themselves.

    Args:
        scale: Length that every group's gradient gets.
    """

    title = "the gradient of every group is scaled to the same length"
    cannot = "balance unequal batches: a group counts like the root of its points"

    scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_per_group(self.scale, "scale", 0.0, strict=True)

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        squares = np.diagonal(gram_of(seen), axis1=-2, axis2=-1)
        return np.asarray(self.scale / np.sqrt(np.maximum(squares, np.finfo(float).tiny)))


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

    title = "the mean of the group gradients, each first projected so that it harms no group"
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
