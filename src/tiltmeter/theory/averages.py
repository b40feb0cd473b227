"""Averages over the training examples of each group, for the replica equations of a loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.losses import Hinge, Logistic, Loss, Square
from tiltmeter.population.channel import NODES, WEIGHTS, Channel, channel, panel_edges, score_law
from tiltmeter.problem.objective_arrays import LABELS, ProblemArrays
from tiltmeter.theory.proximal import corners, proximal

#: Losses whose averages have a compiled loop.
_KINDS: dict[type[Loss], int] = {Square: 0, Logistic: 1, Hinge: 2}
_Y = np.array(LABELS, dtype=float)[None, :]


@dataclass(frozen=True)
class Averages:
    """Per group: E[f], E[f^2], E[df / d score], E[df / d nu], and the mean loss of a training example.

    f = -s l'(y, u) is the force of an example at u, the proximal step from the score that it would have if it were left
    out; nu is the field that decides its label.
    """

    f: np.ndarray
    square: np.ndarray
    slope: np.ndarray
    turn: np.ndarray
    training_loss: np.ndarray


def averages(
    loss: Loss,
    point: ProblemArrays,
    M: np.ndarray,
    R: np.ndarray,
    Q: np.ndarray,
    bias: np.ndarray,
    V: np.ndarray,
    fineness: int = 1,
) -> Averages:
    """Return the averages at given overlaps; M, R, Q, bias and V = variance * dQ have one entry per group."""
    mean, scale, r, rest = score_law(M, R, Q, bias, point.D)
    strength = V[:, None] * point.s
    cuts = corners(loss, _Y, strength)
    if type(loss) in _KINDS:
        from tiltmeter.theory.compiled_averages import fill_averages

        out = np.empty((5, len(V)))
        edges = panel_edges(mean, scale, r, rest, point.a, cuts, fineness)
        kind = _KINDS[type(loss)]
        fill_averages(kind, edges, NODES, WEIGHTS, mean, scale, r, rest, point.a, point.s, V, out)
        return Averages(*out)
    return general_averages(loss, channel(mean, scale, r, rest, point.a, cuts, fineness), point.s, V)


def general_averages(loss: Loss, law: Channel, weights: np.ndarray, V: np.ndarray) -> Averages:
    """Return the same for any convex loss, from its value, gradient and curvature."""
    s, label = weights[:, :, None], law.label
    push = V[:, None, None] * s
    u = proximal(loss, law.score, label, push)
    f = -s * loss.gradient(u, label)
    bend = loss.curvature(u, label)
    slope = -s * bend / (1.0 + push * bend)
    for kink in loss.kinks:  # an example at a kink stays there: its force balances any change of the score
        drawn = (u == kink * label) & (u != law.score)
        f = np.where(drawn, (u - law.score) / V[:, None, None], f)
        slope = np.where(drawn, -1.0 / V[:, None, None], slope)
    return Averages(
        f=law.mean(f),
        square=law.mean(f * f),
        slope=law.mean(slope),
        turn=law.response(f),
        training_loss=law.mean(loss.value(u, label)),
    )
