"""The channel: the joint distribution of score and label in each group, as nodes and weights for averages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import numpy as np
from scipy.special import ndtr

#: Half the range of the standard normal that is integrated; the rest has probability 1e-15.
REACH = 8.0
#: Nodes per panel.
ORDER = 12
#: Edges around the score at which the label changes, in units of the width of that change.
TURN = np.array([-6.0, -3.0, -1.0, 1.0, 3.0, 6.0])

ROOT_TAU = float(np.sqrt(2.0 * np.pi))
#: The widest panel, in standard deviations of the score.
WIDEST = 2.7
NODES, WEIGHTS = np.polynomial.legendre.leggauss(ORDER)
_LABEL = np.array([1.0, -1.0])[None, :, None]


@dataclass(frozen=True)
class Channel:
    """Nodes over G groups, both labels (+1, -1) and J scores; every array has shape (G, 2, J), `label` (1, 2, 1).

    `score` = mean + scale * xi with xi standard normal. `weight` is the probability of score and label together, so
    that an average is `(weight * h).sum((1, 2))`; `slope` is its derivative with respect to the label's threshold a.
    """

    score: np.ndarray
    xi: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    slope: np.ndarray

    def mean(self, values: np.ndarray) -> np.ndarray:
        """E[values] per group."""
        return np.asarray((self.weight * values).sum((1, 2)))

    def response(self, values: np.ndarray) -> np.ndarray:
        """d E[values] / da per group, for constant values."""
        return np.asarray((self.slope * values).sum((1, 2)))


def channel(
    mean: np.ndarray,
    scale: np.ndarray,
    r: np.ndarray,
    rest: np.ndarray,
    a: np.ndarray,
    cuts: np.ndarray | None = None,
    fineness: int = 1,
) -> Channel:
    """Gauss-Legendre panels over the score, split where the label changes and where the integrand has corners.

    >>> one = np.ones(1)
    >>> law = channel(0.2 * one, one, 0.6 * one, 0.8 * one, 0.3 * one)
    >>> law.mean(law.label * np.ones_like(law.weight)).item()  # the mean label, erf(0.3 / sqrt 2)
    0.235822...

    In a group the score has the given mean and standard deviation `scale`. The field that decides the label has mean
    `a`, variance 1 and correlation `r` with the score; `rest` = sqrt(1 - r^2). `cuts` (G, 2, C) are scores at which the
    integrand is not smooth. `fineness` divides the width of the panels.
    """
    edges = panel_edges(mean, scale, r, rest, a, cuts, fineness)
    half = 0.5 * (edges[:, :, 1:] - edges[:, :, :-1])[..., None]
    middle = 0.5 * (edges[:, :, 1:] + edges[:, :, :-1])[..., None]
    xi = (middle + half * NODES).reshape(len(mean), 2, -1)
    mass = (half * WEIGHTS).reshape(xi.shape) * np.exp(-0.5 * xi * xi) / ROOT_TAU
    t = (a[:, None, None] + r[:, None, None] * xi) / rest[:, None, None]
    turn_rate = np.exp(-0.5 * t * t) / (ROOT_TAU * rest[:, None, None])
    return Channel(
        score=mean[:, None, None] + scale[:, None, None] * xi,
        xi=xi,
        label=_LABEL,
        weight=mass * ndtr(_LABEL * t),
        slope=mass * _LABEL * turn_rate,
    )


def panel_edges(
    mean: np.ndarray,
    scale: np.ndarray,
    r: np.ndarray,
    rest: np.ndarray,
    a: np.ndarray,
    cuts: np.ndarray | None = None,
    fineness: int = 1,
) -> np.ndarray:
    """The edges (G, 2, E) of the panels in units of xi, ascending; panels may have width zero."""
    width = min(WIDEST, 6.0 / max(float(scale.max()), 1e-9))
    panels = min(ceil(2.0 * REACH * fineness / width), 300 * fineness)
    groups = len(mean)
    steep = np.abs(r) > 0.8
    extra: list[np.ndarray] = []
    if steep.any():
        safe = np.where(steep, r, 1.0)
        turn = np.where(steep[:, None], (-a / safe)[:, None] + (rest / np.abs(safe))[:, None] * TURN, REACH)
        extra.append(np.broadcast_to(turn[:, None, :], (groups, 2, len(TURN))))
    if cuts is not None and cuts.size:
        extra.append((cuts - mean[:, None, None]) / scale[:, None, None])
    equal = _equal_edges(panels, groups)
    return np.sort(np.clip(np.concatenate([equal, *extra], axis=2), -REACH, REACH), axis=2) if extra else equal


@lru_cache(maxsize=64)
def _equal_edges(panels: int, groups: int) -> np.ndarray:
    edges = np.empty((groups, 2, panels + 1))
    edges[:] = np.linspace(-REACH, REACH, panels + 1)
    edges.flags.writeable = False
    return edges


def score_intervention(
    M: np.ndarray, R: np.ndarray, Q: np.ndarray, bias: np.ndarray, D: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(mean, scale, r, rest) of the score in each group, from the overlaps of the student that scores it."""
    length = np.maximum(Q, 1e-250)
    r = np.clip(R / np.sqrt(length), -1.0, 1.0)
    rest = np.maximum(np.sqrt(np.maximum(length - R * R, 0.0) / length), 1e-12)
    return M + bias, np.sqrt(D * length), r, rest
