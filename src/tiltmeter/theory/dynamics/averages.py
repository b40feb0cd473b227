"""Averages over the training examples of each group, for the replica equations of a loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.losses import Hinge, Logistic, Loss, Square
from tiltmeter.theory.population.channel import NODES, WEIGHTS, Channel, channel, panel_edges, score_intervention
from tiltmeter.theory.problem.objective import LABELS, ProblemArrays


def proximal(loss: Loss, score: np.ndarray, y: np.ndarray, strength: np.ndarray) -> np.ndarray:
    """argmin over u of (u - score)^2 / 2 + strength * loss(u, y), by Newton steps kept inside a bracket.

    >>> from tiltmeter.losses import Hinge, Square
    >>> one = np.ones(3)
    >>> proximal(Square(), 0.0 * one, one, 3.0 * one).tolist()
    [0.75, 0.75, 0.75]
    >>> proximal(Hinge(), np.array([-1.0, 0.8, 2.0]), one, 0.5 * one).tolist()
    [-0.5, 1.0, 2.0]

    The slope of a convex loss increases, so the answer lies between the score and the score minus strength times the
    slope there. Around a kink (where the slope jumps) a whole interval of scores is mapped to the kink.
    """
    score, y, strength = np.broadcast_arrays(score, y, strength)
    step = strength * loss.gradient(score, y)
    low, high = np.minimum(score, score - step), np.maximum(score, score - step)
    stuck = np.zeros(score.shape, dtype=bool)
    at = np.zeros(score.shape)
    for kink in loss.kinks:
        below, above = pull(loss, kink, y, strength)
        place = kink * y
        here = (score >= place + below) & (score <= place + above)
        stuck, at = stuck | here, np.where(here, place, at)
        low = np.where(score > place + above, np.maximum(low, place), low)
        high = np.where(score < place + below, np.minimum(high, place), high)
    low, high = np.minimum(low, high), np.maximum(low, high)
    u, done, last = 0.5 * (low + high), stuck, high - low
    for _ in range(200):
        miss = u - score + strength * loss.gradient(u, y)
        low, high = np.where(miss <= 0, u, low), np.where(miss >= 0, u, high)
        step = miss / (1.0 + strength * loss.curvature(u, y))
        new = u - step
        # Newton where it stays inside and gets shorter, else halve the bracket.
        trust = (new >= low) & (new <= high) & (np.abs(step) <= 0.5 * last)
        new = np.where(trust, new, 0.5 * (low + high))
        last = np.abs(new - u)
        u = np.where(done, u, new)
        done = done | (last <= 1e-14 * (1.0 + np.abs(u)))
        if done.all():
            break
    return np.where(stuck, at, u)


def pull(loss: Loss, kink: float, y: np.ndarray, strength: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of scores around the kink that is mapped to it (signed offsets, below <= above)."""
    place = kink * y
    below = loss.gradient(np.nextafter(place, -np.inf), y)
    above = loss.gradient(np.nextafter(place, np.inf), y)
    return strength * below, strength * above


def corners(loss: Loss, y: np.ndarray, strength: np.ndarray) -> np.ndarray | None:
    """The scores at which the proximal step has corners, along a new last axis; None for a smooth loss."""
    if not loss.kinks:
        return None
    y, strength = np.broadcast_arrays(y, strength)
    ends = [kink * y + offset for kink in loss.kinks for offset in pull(loss, kink, y, strength)]
    return np.stack(ends, axis=-1)


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
    mean, scale, r, rest = score_intervention(M, R, Q, bias, point.D)
    strength = V[:, None] * point.s
    cuts = corners(loss, _Y, strength)
    if type(loss) in _KINDS:
        from tiltmeter.theory.dynamics.compiled_averages import fill_averages

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
