"""Averages over the training examples of each group: what the replica equations need of a loss."""

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

    f = -s l'(y, u) is the force of an example at its place u = proximal step from the score it would have without
    itself, nu the field that decides its label.
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
    """The averages at given overlaps; M, R, Q, bias and the response V = variance * dQ have one entry per group."""
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
    """The same for any convex loss, by its own functions."""
    s, label = weights[:, :, None], law.label
    push = V[:, None, None] * s
    u = proximal(loss, law.score, label, push)
    f = -s * loss.gradient(u, label)
    bend = loss.curvature(u, label)
    slope = -s * bend / (1.0 + push * bend)
    for kink in loss.kinks:  # an example drawn to a kink stays there: its force makes up for any move of the score
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
