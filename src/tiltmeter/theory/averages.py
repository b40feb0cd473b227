"""Averages over the training examples of each group: what the replica equations need of a loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.flattened import LABELS, Point
from tiltmeter.losses import Loss
from tiltmeter.observables.channel import channel, score_law
from tiltmeter.theory.proximal import corners, proximal

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
    point: Point,
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
    law = channel(mean, scale, r, rest, point.a, corners(loss, _Y, strength), fineness)
    s, push, label = point.s[:, :, None], strength[:, :, None], law.label
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
